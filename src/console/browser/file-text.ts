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
    return { text: await answer.text(), etag: etagOf(answer) };
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
