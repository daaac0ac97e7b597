/** What the steps of deeds with files have in common: the file is found, read and written. */
import { TEXT_FILE } from "../../../lib/questions.ts";
import type { Call } from "./calls.ts";
import { filesAkin, filesMentioned, isNamedWhole, withoutAgentsOwn } from "./details.ts";
import type { MadeCall } from "./made-call.ts";
import type { ToolName } from "./offered.ts";
import { failed, namesIn, notKnown, tell, withoutFence } from "./tell.ts";

/** The model answers the request, and the answer is written into the file. */
export interface Composing {
  request: string;
  callWith(text: string): Call;
}

export type DeedStep = { call: Call } | { text: string } | { compose: Composing };

export const IS_NAME = new RegExp(`${TEXT_FILE}$`, "i");

export const callOf = (name: string, text: string): Call => ({
  name: "write_file",
  input: { name, text: text === "" || text.endsWith("\n") ? text : `${text}\n` },
});
export const calling = (name: ToolName, input: Record<string, unknown>): DeedStep => ({ call: { name, input } });
export const writing = (name: string, text: string): DeedStep => ({ call: callOf(name, text) });

/** Without having read it as it is now, a run does not replace a file. */
const UNREAD = /^(?<name>.+?) is not as you read it last/;

export function toldWritten(last: MadeCall, question: string): string {
  const name = last.isError ? UNREAD.exec(last.output)?.groups?.name : undefined;
  return name === undefined
    ? tell(last, question)
    : `There is a file ${name} already. Ask me to add to it, or to delete it first.`;
}

export const isRefused = ({ name, isError }: MadeCall): boolean => name === "write_file" && isError;

export function toldChanged(last: MadeCall): string {
  const name = UNREAD.exec(last.output)?.groups?.name;
  return name === undefined ? tell(last, "") : `${name} was changed just now. Ask me again.`;
}

interface Meant {
  /** Whether another file may be meant by less than all that the person calls it: nothing in it is lost. */
  isLoose?: boolean;
  /** Whether "the list" may be the only list there is. */
  isOnly?: boolean;
  /** What is done if there is none. */
  missing?: () => DeedStep;
}

/** With the file's name; the files are listed first where the person calls it something else. */
export function inFile(
  file: string,
  made: readonly MadeCall[],
  step: (name: string) => DeedStep,
  { isLoose = false, isOnly = isLoose, missing }: Meant = {},
): DeedStep {
  if (IS_NAME.test(file)) return step(file);
  const listed = made.find(({ name }) => name === "list_files");
  if (listed === undefined) return calling("list_files", {});
  const names = withoutAgentsOwn(namesIn(listed.output));
  const mentioned = filesMentioned(file, names);
  const [name, ...others] = isLoose ? mentioned : mentioned.filter((one) => isNamedWhole(file, one));
  if (name !== undefined) return others.length === 0 ? step(name) : whichOf([name, ...others]);
  const akin = mentioned.length > 0 ? mentioned : filesAkin(file, names, missing !== undefined);
  const [near] = akin;
  if (near === undefined) return missing?.() ?? { text: notKnown(listed) };
  if (akin.length > 1 && mentioned.length === 0) return whichOf(akin);
  if (isOnly && mentioned.length === 0) return step(near);
  return { text: `Do you mean ${near}? Then ask me again with that name.` };
}

const whichOf = (names: readonly string[]): DeedStep => ({ text: `Which one do you mean: ${names.join(", ")}?` });

export const isMissing = ({ output }: MadeCall): boolean => /not found|no file|does not exist/i.test(output);
export const tooLong = (name: string): DeedStep => ({ text: failed("it is too long for me", `with ${name}`) });

/** Null if only some of its lines were shown. */
export function wholeText({ output }: MadeCall): string | null {
  const text = withoutFence(output);
  if (/^\[\S+ is empty\.\]$/.test(text)) return "";
  return /\n\[Lines? \d+ [^\n]*\]$/.test(text) ? null : text;
}
