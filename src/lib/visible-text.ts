import { hiddenCharacters } from "./hidden-characters.ts";

/** A text in which everything is to be seen: what has no shape of its own, or turns others around, is escaped as in JSON. */
export function visibleText(text: string): string {
  let shown = "";
  let from = 0;
  for (const { index, character } of hiddenCharacters(text)) {
    shown += text.slice(from, index);
    // One escape for each UTF-16 unit, so that JSON stays JSON.
    for (const unit of character.split("")) shown += `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
    from = index + character.length;
  }
  return shown + text.slice(from);
}

/** JSON in which everything is to be seen. */
export const visibleJson = (value: unknown, indent?: number): string =>
  visibleText(JSON.stringify(value, null, indent) ?? "null");
