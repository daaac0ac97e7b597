/** Between what an agent says before its calls and after them: models begin anew, so that the two would run together. */
const BREAK = "\n\n";

export interface ShownText {
  /** A step has ended that said this. */
  end(said: string): void;
  /** The delta of the next step, as it is shown; empty while that is only white space. */
  add(delta: string): string;
}

/** Makes the texts of a run's steps paragraphs of one answer, whatever white space they begin or end with. */
export function createShownText(): ShownText {
  let before = "";
  let indent = "";
  return {
    end(said) {
      if (said.trim() !== "") before = said;
      indent = "";
    },
    add(delta) {
      if (before === "") return delta;
      const line = delta.replace(/^\s*\n/, "");
      indent = line === delta ? indent : "";
      if (line.trim() === "") {
        indent += line;
        return "";
      }
      const ending = before.slice(before.trimEnd().length);
      before = "";
      return BREAK.slice(ending.split("\n").length - 1) + indent + line;
    },
  };
}
