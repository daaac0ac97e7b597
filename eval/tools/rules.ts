/** Whether an answer with tools is right. */
import type { CallMade, ToolAnswer } from "./answers.ts";
import type { ToolCase } from "./cases.ts";

/** What may come before the call that is wanted: it finds the file or the note, and a file that is to change is read. */
const LOOKS = new Set(["list_files", "read_file", "search_memory"]);

/**
 * Right: the last call is the wanted one, the ones before only looked, or wrote the file under its new name, and the answer
 * says what it must.
 */
export function isRight({ wanted }: Pick<ToolCase, "wanted">, { calls, text }: ToolAnswer): boolean {
  const last = calls.at(-1);
  if (wanted === null || last === undefined) return wanted === null && last === undefined;
  const before = calls.slice(0, -1);
  const written = before.filter(({ name }) => !LOOKS.has(name));
  const to = wanted.tool === "delete_file" && wanted.to !== undefined ? [wanted.to] : [];
  const isMoved = written.every(({ name, input }, at) => name === "write_file" && input.name === to[at]);
  if (last.name !== wanted.tool || written.length !== to.length || !isMoved) return false;
  return isAsWanted(wanted, last) && text.includes(wanted.says ?? "");
}

function isAsWanted(wanted: NonNullable<ToolCase["wanted"]>, { input, output }: CallMade): boolean {
  switch (wanted.tool) {
    case "now":
      return (input.timeZone ?? "UTC") === wanted.timeZone;
    case "run_javascript":
      return Math.abs(Number(output.replace("result: ", "")) - wanted.result) < 1e-9;
    case "list_files":
      return input.folder === wanted.folder;
    case "read_file":
      return input.name === wanted.name;
    case "search_memory":
      return input.query === wanted.query;
    case "delete_file":
      return input.name === wanted.name;
    case "write_file":
      return input.name === wanted.name && /^(?:Created|Replaced) /.test(output) && isText(input.text, wanted.text);
    case "remember":
      return isText(input.text, wanted.text);
  }
}

/** Exactly this, but for the punctuation around it, and for who has said it. */
function isText(text: unknown, wanted: string | undefined): boolean {
  const bare = (words: string) => words.replace(/^The user says: |^\W+|\W+$/g, "").toLowerCase();
  return wanted === undefined ? bare(String(text)) !== "" : bare(String(text)) === bare(wanted);
}
