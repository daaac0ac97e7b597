import { backTo, colours, mayDraw, oneLine, printable, shortened, stream, terminalColumns } from "../output.ts";
import type { RunEvent } from "./follow.ts";
import { createWrapping } from "./wrapping.ts";

/** Shows an answer on the terminal as it comes. */
export interface AnswerView {
  show(event: RunEvent): void;
  /** Ends the line that was begun, whatever came of the answer. */
  end(): void;
}

/**
 * Lines end at words where the terminal does; tools, restarts and the end of a stopped answer are told in passing, dim,
 * on lines of their own. `name` stands before the text, and only before text: whatever else is told is not the agent's.
 */
export function openAnswerView(name: string | null): AnswerView {
  let isWaiting = mayDraw();
  let label = name === null ? "" : `${name}> `;
  let midLine = false;
  let write = openLine(0);
  if (isWaiting) stream(colours.dim("thinking…"));

  /** The first sign of life takes the place of the waiting. */
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

  function aside(told: string): void {
    endLine();
    stream(colours.dim(shortened(oneLine(told), (terminalColumns() ?? LONGEST_ASIDE) - 1)), "\n");
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
        case "run.restarted":
          aside("· the server was restarted: the answer begins again");
          break;
        case "run.cancelled":
          aside("· cancelled");
          break;
        default:
          break;
      }
    },
    end: endLine,
  };
}

/** In characters, where no terminal says how wide it is. */
const LONGEST_ASIDE = 120;

/** What writes text that begins at this column: broken into lines on a terminal, as it is elsewhere. */
function openLine(column: number): (text: string) => void {
  if (terminalColumns() === null) return stream;
  const page = { write: (text: string) => stream(text), takeBack: (_: string, from: number) => stream(backTo(from)) };
  return createWrapping(page, () => terminalColumns() ?? 80, column);
}
