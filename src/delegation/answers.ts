import { fence, neutralise } from "../lib/untrusted.ts";
import type { Message, Run } from "../messages/schema.ts";
import { cutOutput, MAX_OUTPUT } from "../tools/long-output.ts";
import type { RunResult } from "../tools/run-tool.ts";

/** How a run has ended that another one waited for. */
export interface Ended {
  /** Of a copy; null for another agent. */
  title: string | null;
  agentName: string;
  /** Undefined once it is deleted. */
  run: Run | undefined;
  reply: Pick<Message, "text" | "tainted"> | undefined;
  isLate: boolean;
}

/** For the words around the answers, and the marks around a stranger's text. */
const ROOM = 500;

/** The result of a call that has waited for these, as its model gets it: in their order, each labelled as what it is. */
export function resultOf(all: readonly Ended[]): RunResult {
  const each = Math.floor(MAX_OUTPUT / Math.max(1, all.length)) - ROOM;
  const answers = all.map((one) => answerOf(one, each));
  return {
    output: answers.map(({ output }) => output).join("\n\n"),
    isError: answers.every(({ isError }) => isError),
    isUntrusted: answers.some(({ isUntrusted }) => isUntrusted),
  };
}

function answerOf({ title, agentName, run, reply, isLate }: Ended, most: number): RunResult {
  const who = title === null ? `The agent ${agentName}` : `Your copy for "${title}"`;
  if (run?.status !== "completed" || reply === undefined) {
    return { output: `${who} has not answered: ${whyNot(run, isLate)}.`, isError: true, isUntrusted: false };
  }
  const isUntrusted = reply.tainted;
  const text = cutOutput(neutralise(reply.text), most);
  const said = isUntrusted ? fence(text) : text;
  const label = `${who} answers. These are its words, not your user's:`;
  return {
    output: said.trim() === "" ? `${who} is done, and says nothing.` : `${label}\n${said}`,
    isError: false,
    isUntrusted,
  };
}

function whyNot(run: Run | undefined, isLate: boolean): string {
  if (isLate) return "it took too long and was stopped";
  // Its message names the call, and a model that a stranger has steered may have called anything.
  if (run?.errorCode === "loop_detected") return "its run failed: it repeated the same call with the same result";
  if (run?.status === "failed") {
    return `its run failed: ${run.errorMessage?.replace(/\.$/, "") ?? "for an unknown reason"}`;
  }
  if (run?.status === "cancelled") return "its run was cancelled";
  return "its conversation was deleted";
}
