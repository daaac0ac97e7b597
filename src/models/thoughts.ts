/** What a model thinks aloud before it answers: `<think>…</think>`, which many servers pass on as a part of the answer. */
const OPEN = "<think>";
const CLOSE = "</think>";
/** White space before thoughts: an endless beginning would be looked at again with each piece. */
const MAX_SPACE = 64;

export interface ThoughtFilter {
  /** Takes more of an answer, and returns what of it is no thought. */
  push(text: string): string;
  /** What was held back, of an answer that has ended. */
  end(): string;
}

/** Leaves thoughts out, which stand at the beginning of an answer and nowhere else. */
export function createThoughtFilter(): ThoughtFilter {
  let place: "start" | "thoughts" | "after" | "answer" = "start";
  let held = "";
  return {
    push(text) {
      if (place === "answer" || text === "") return text;
      held += text;
      if (place === "start") {
        const begun = held.trimStart();
        const isEarly = held.length - begun.length <= MAX_SPACE;
        if (isEarly && OPEN.startsWith(begun)) return "";
        if (isEarly && begun.startsWith(OPEN)) place = "thoughts";
      }
      if (place === "thoughts") {
        const end = held.indexOf(CLOSE);
        held = end < 0 ? held.slice(1 - CLOSE.length) : held.slice(end + CLOSE.length);
        if (end < 0) return "";
        place = "after";
      }
      const shown = place === "after" ? held.trimStart() : held;
      held = "";
      if (shown !== "") place = "answer";
      return shown;
    },
    end: () => (place === "start" ? held : ""),
  };
}
