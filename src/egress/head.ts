import type { SocketReader } from "./reader.ts";
import { EgressError } from "./refusal.ts";

export interface AnswerHead {
  status: number;
  /** Names in lower case, in the order of the answer. */
  headers: [name: string, value: string][];
}

/** All headers together, those of interim answers (1xx) included. */
const MAX_HEAD_BYTES = 32 * 1024;

/** A header's name (RFC 9110, 5.6.2). */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: |$)/;

/** The values of a header, in order. */
export const valuesOf = ({ headers }: AnswerHead, name: string): string[] =>
  headers.filter(([one]) => one === name).map(([, value]) => value);

/** Reads the head of an HTTP/1.1 answer. Throws `EgressError` for what is none, or too long. */
export async function readHead(reader: SocketReader): Promise<AnswerHead> {
  let left = MAX_HEAD_BYTES;
  const line = async () => {
    const text = await reader.line(left);
    left -= text.length + 2;
    if (left < 0) throw new EgressError("size", `the answer's headers are longer than ${MAX_HEAD_BYTES} bytes`);
    return text;
  };
  for (;;) {
    const [, status] = STATUS_LINE.exec(await line()) ?? [];
    if (status === undefined) throw new EgressError("protocol", "the server did not answer in HTTP/1.1");
    const headers: AnswerHead["headers"] = [];
    for (let text = await line(); text !== ""; text = await line()) headers.push(readHeader(text));
    if (status === "101") throw new EgressError("protocol", "the server switched to another protocol");
    if (Number(status) >= 200) return { status: Number(status), headers };
  }
}

function readHeader(text: string): [string, string] {
  const colon = text.indexOf(":");
  const name = text.slice(0, Math.max(0, colon));
  // A continued line, or a control character: two readers would understand two things.
  if (!HEADER_NAME.test(name) || /[\0\r]/.test(text))
    throw new EgressError("protocol", "the answer has a broken header");
  return [name.toLowerCase(), text.slice(colon + 1).trim()];
}
