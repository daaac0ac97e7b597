import { RoostError } from "../../../clients/typescript/src/index.ts";
import { roost } from "./api.ts";
import { AGENT } from "./records.ts";

/** Which file of which agent. */
export interface FileAt {
  instanceId: string;
  agentId: string;
  file: string;
}

/** A version of a file: what is written over it names its ETag, and is refused if it has changed. */
export interface Version {
  text: string;
  /** Null where there is no file. */
  etag: string | null;
}

const FILE = `${AGENT}/files/{file}` as const;

/** The file as it is now. */
export async function readFile(path: FileAt): Promise<Version> {
  try {
    const answer = await roost.open("get", FILE, { path });
    // What stands at its beginning to tell its bytes' order stays.
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await answer.arrayBuffer());
    return { text, etag: etagOf(answer) };
  } catch (error) {
    if (error instanceof RoostError && error.code === "not_found") return { text: "", etag: null };
    throw error;
  }
}

/** Writes the text over this version; null if the file is another by now. */
export const writeFile = (path: FileAt, body: string, over: Version): Promise<Version | null> =>
  unlessChanged(async () => {
    const answer = await roost.open("put", FILE, { path, body, headers: conditionOf(over) });
    return { text: body, etag: etagOf(answer) };
  });

/** Deletes this version; null if the file is another by now. */
export const deleteFile = (path: FileAt, over: Version): Promise<true | null> =>
  unlessChanged<true>(async () => {
    await roost.delete(FILE, { path, headers: conditionOf(over) });
    return true;
  });

const conditionOf = ({ etag }: Version) => (etag === null ? { "If-None-Match": "*" } : { "If-Match": etag });

/** A proxy that compresses makes it a weak one, which names no version to write over. */
const etagOf = ({ headers }: Response): string | null => headers.get("etag")?.replace(/^W\//, "") ?? null;

async function unlessChanged<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RoostError && error.code === "precondition_failed") return null;
    throw error;
  }
}

/** As a browser's text box has them. */
export const lines = (text: string): string => text.replace(/\r\n?/g, "\n");

/** The same one by one, each with its own end. */
const linesIn = (text: string): string[] => text.match(/[^\r\n]*(\r\n?|\n)|[^\r\n]+/g) ?? [];

/** A text box's text with the line ends of the file that it was made of: a line that nobody has changed keeps its own. */
export function withLineEnds(text: string, { text: before }: Version): string {
  const [old, now] = [linesIn(before), linesIn(text)];
  const isSame = (one = "", other = "") => lines(one) === other;
  const least = Math.min(old.length, now.length);
  let head = 0;
  while (head < least && isSame(old[head], now[head])) head++;
  let tail = 0;
  while (tail < least - head && isSame(old.at(-1 - tail), now.at(-1 - tail))) tail++;
  const isMostlyCrlf = 2 * old.filter((line) => line.endsWith("\r\n")).length > old.length;
  const changed = now.slice(head, now.length - tail).join("");
  return [
    ...old.slice(0, head),
    isMostlyCrlf ? changed.replaceAll("\n", "\r\n") : changed,
    ...old.slice(old.length - tail),
  ].join("");
}
