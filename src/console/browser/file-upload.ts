import type { AgentIds } from "../../../clients/typescript/src/index.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";
import { type FileAt, readFile, type Version, writeFile } from "./file-text.ts";
import { ToldError, toldError } from "./told-error.ts";

/** Chosen at once. */
const MAX_FILES = 100;
/** Of one file (docs/contract/api.md, Sizes): more is not even read. */
const MAX_KIB = 256;

/** An agent's file that is there already, with another text: what was chosen, and what it is to be written over. */
export interface Clash {
  file: string;
  text: string;
  of: Version;
}

/** A name as the agent's files have it: the host takes no spaces. */
export const nameInWorkspace = ({ name }: File): string => name.trim().replace(/\s+/g, "-");

/**
 * Makes files of the agent out of these, one after the other, and calls `made` for each. What is there already stays as it
 * is: returns those whose text is another. Throws `ToldError` before the first is made if one is too large or no text.
 */
export async function upload(
  ids: AgentIds,
  files: readonly File[],
  made: (file: string, bytes: number) => void,
): Promise<Clash[]> {
  if (files.length > MAX_FILES) {
    throw new ToldError(`These are ${files.length} files`, `Choose up to ${MAX_FILES} at once.`);
  }
  const texts = await Promise.all(files.map(async (file) => ({ file, text: await textOf(file) })));
  const clashes: Clash[] = [];
  for (const { file, text } of texts) {
    const at = { ...ids, file: nameInWorkspace(file) };
    if (await make(at, text)) {
      made(at.file, file.size);
      continue;
    }
    const of = await readFile(at);
    if (of.text !== text) clashes.push({ file: at.file, text, of });
  }
  return clashes;
}

/** Null if it is there already. Throws `ToldError` naming the file: it is one of several. */
async function make(at: FileAt, text: string): Promise<Version | null> {
  try {
    return await writeFile(at, text, { text: "", etag: null });
  } catch (error) {
    const { message, nextStep } = toldError(error);
    throw new ToldError(`${at.file}: ${message}`, nextStep);
  }
}

async function textOf(file: File): Promise<string> {
  if (file.size > MAX_KIB * 1024) {
    throw new ToldError(
      `${file.name} is too large`,
      `A file of an agent has at most ${MAX_KIB} KiB. Nothing was added.`,
    );
  }
  const text = decodeUtf8(await file.arrayBuffer());
  if (text !== null) return text;
  throw new ToldError(
    `${file.name} is not text in UTF-8`,
    "An agent's files are Markdown and other text. Nothing was added.",
  );
}
