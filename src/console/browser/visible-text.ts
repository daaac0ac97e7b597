import { codePointName, hiddenCharacters } from "../../lib/hidden-characters.ts";
import { make } from "./dom.ts";

/** A text of which a reader sees everything: what has no shape, or turns others around, is replaced by its code. */
export function visible(text: string): (string | Node)[] {
  const shown: (string | Node)[] = [];
  let from = 0;
  for (const { index, character } of hiddenCharacters(text)) {
    shown.push(text.slice(from, index), make("mark", "", codePointName(character.codePointAt(0) ?? 0)));
    from = index + character.length;
  }
  return [...shown, text.slice(from)];
}

/** All of a file, in a box that scrolls if it is long. */
export function visibleFile(text: string): HTMLPreElement {
  const shown = make("pre", "text", ...visible(text));
  // What scrolls must be reachable by keyboard.
  shown.tabIndex = 0;
  return shown;
}
