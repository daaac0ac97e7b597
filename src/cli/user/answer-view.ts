import type { RunEvent } from "../../../clients/typescript/src/index.ts";
import { backTo, colours, mayDraw, note, oneLine, printable, shortened, stream, terminalColumns } from "../output.ts";
import { createWordWrap } from "../word-wrap.ts";
import { noteLoss } from "./lost-connection.ts";
import type { Approval } from "./turn.ts";

/** Shows an answer on the terminal as it streams. */
export interface AnswerView {
  show(event: RunEvent): void;
  /** Shows what a person is to decide before this message's turn comes. */
  showBefore(approval: Approval): void;
  /** Tells that the connection is lost, and tried again. */
  lost(): void;
  /** Ends an unfinished line, however the answer ended. */
  end(): void;
}

/**
 * Lines wrap at words. Tools, waits, restarts and cancellations are shown dim, on lines of their own. `name` is shown before
 * the text and never before those lines, which are not the agent's words.
 */
export function openAnswerView(name: string | null): AnswerView {
  let isWaiting = mayDraw();
  let label = name === null ? "" : `${name}> `;
  let midLine = false;
  let write = openLine(0);
  if (isWaiting) stream(colours.dim("thinking…"));

  /** The first output replaces "thinking…". */
  function begin(): void {
    if (isWaiting) stream(backTo(0));
    isWaiting = false;
  }

  function text(delta: string): void {
    if (delta === "") return;
    begin();
    if (label !== "") {
      stream(colours.cyan(label));
      write = openLine(Bun.stringWidth(label));
      label = "";
    }
    write(delta);
    midLine = !delta.endsWith("\n");
  }

  function aside(line: string): void {
    endLine();
    stream(colours.dim(shortened(oneLine(line), asideWidth())), "\n");
  }

  /** The command is never cut: below what it is for where both do not fit, and broken by the terminal if it must be. */
  function decision(when: string, approval: Approval): void {
    const whole = toDecide(when, approval);
    if (Bun.stringWidth(oneLine(whole)) <= asideWidth()) {
      aside(whole);
      return;
    }
    aside(`· ${when}: ${approval.tool}`);
    stream(colours.dim(`  ${showCommand(approval)}`), "\n");
  }

  function endLine(): void {
    begin();
    if (midLine) stream("\n");
    midLine = false;
    write = openLine(0);
  }

  return {
    show(event) {
      switch (event.type) {
        case "message.delta":
          text(printable(event.delta));
          break;
        case "tool.started":
          aside(`· ${event.name} ${JSON.stringify(event.input)}`);
          break;
        case "tool.completed":
          if (event.isError) aside(`· ${event.name} failed: ${event.output}`);
          break;
        case "run.waiting":
          // What a person decides, and other agents, are told by themselves.
          if (event.calls.every(({ waitsFor: { kind } }) => kind === "tool")) aside("· waiting");
          break;
        case "delegation.started":
          aside(`· waiting for ${event.tasks.map(({ title, agentName }) => title ?? agentName).join(", ")}`);
          break;
        case "approval.requested":
          decision("to decide", event.approval);
          break;
        case "run.restarted":
          aside("· the server was restarted: the answer starts again");
          break;
        case "run.cancelled":
          aside("· cancelled");
          break;
        default:
          break;
      }
    },
    showBefore: (approval) => decision("to decide first", approval),
    lost() {
      endLine();
      noteLoss();
    },
    end: endLine,
  };
}

/** For pipes: tells on standard error what a person should know meanwhile, and nothing else. */
export const QUIET_VIEW: AnswerView = {
  show(event) {
    if (event.type === "approval.requested") note(toDecide("to decide", event.approval));
  },
  showBefore: (approval) => note(toDecide("to decide first", approval)),
  lost: noteLoss,
  end() {},
};

const showCommand = ({ approvalId }: Approval): string => `roost approval show ${approvalId}`;

const toDecide = (when: string, approval: Approval): string => `· ${when}: ${showCommand(approval)} (${approval.tool})`;

/** In characters, when no terminal reports its width. */
const MAX_ASIDE = 120;
const asideWidth = (): number => (terminalColumns() ?? MAX_ASIDE) - 1;

/** Returns what writes text starting at this column: wrapped on a terminal, unchanged elsewhere. */
function openLine(column: number): (text: string) => void {
  if (terminalColumns() === null) return stream;
  const page = { write: (text: string) => stream(text), takeBack: (_: string, from: number) => stream(backTo(from)) };
  return createWordWrap(page, () => terminalColumns() ?? 80, { column });
}
