import type { Agent } from "../agents/schema.ts";
import type { Workspaces } from "../agents/workspaces.ts";

/** The file that says what an agent is to look after at each beat. */
export const DUTIES_FILE = "HEARTBEAT.md";

/** What an agent is told at a beat. */
export interface Duties {
  text: string;
  /** Whether a stranger may have written it. */
  isTainted: boolean;
}

/** What the agent's file says now; null where it says nothing (docs/contract/api.md, Heartbeat). */
export const dutiesIn =
  (workspaces: Pick<Workspaces, "some" | "taintedOf">) =>
  (agent: Agent): Duties | null => {
    const text = workspaces.some(agent, [DUTIES_FILE])[0]?.text ?? "";
    if (saysNothing(text)) return null;
    return { text, isTainted: workspaces.taintedOf(agent, [DUTIES_FILE]).length > 0 };
  };

/** Whether there is nothing but headings (with `#`) and comments. A comment that is not closed reaches to the end. */
export const saysNothing = (text: string): boolean =>
  text
    .replace(/<!--[\s\S]*?(?:-->|$)/g, "")
    .split("\n")
    .every((line) => line.trim() === "" || /^ {0,3}#{1,6}(?:\s|$)/.test(line));
