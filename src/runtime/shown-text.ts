/** Between what an agent says before its calls and after them: models begin anew, so that the two would run together. */
const BREAK = "\n\n";

export interface ShownText {
  /** A step has ended that said this. */
  end(said: string): void;
  /** The delta of the next step, as it is shown. */
  add(delta: string): string;
}

/** Puts a break between the texts of a run's steps, unless one of them has white space there. */
export function createShownText(): ShownText {
  let before = "";
  return {
    end(said) {
      if (said !== "") before = said;
    },
    add(delta) {
      const shown = /\S$/.test(before) && /^\S/.test(delta) ? BREAK + delta : delta;
      before = "";
      return shown;
    },
  };
}
