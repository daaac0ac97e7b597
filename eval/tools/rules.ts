/** Whether an answer with tools is right. */
import type { CallMade, ToolAnswer } from "./answers.ts";
import type { ToolCase } from "./cases.ts";

/** Right: the last call is the wanted one, only `list_files` came before it, and the answer says what it must. */
export function isRight({ wanted }: Pick<ToolCase, "wanted">, { calls, text }: ToolAnswer): boolean {
  const last = calls.at(-1);
  if (wanted === null || last === undefined) return wanted === null && last === undefined;
  const before = calls.slice(0, -1);
  if (last.name !== wanted.tool || before.some(({ name }) => name !== "list_files")) return false;
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
    case "write_file": {
      const isName = wanted.name === undefined ? output.startsWith("Created ") : input.name === wanted.name;
      // Exactly this, but for the punctuation around it.
      const bare = (text: string) => text.replace(/^\W+|\W+$/g, "").toLowerCase();
      return isName && bare(String(input.text)) === bare(wanted.text);
    }
  }
}
