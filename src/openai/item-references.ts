import { AppError } from "../lib/app-error.ts";
import type { Said } from "./turns.ts";

/** Answers that one request may refer to, their bytes, and those of all that is read to find them. */
const MAX_ANSWERS = 1_000;
const MAX_ANSWER_BYTES = 1024 * 1024;
const MAX_READ_BYTES = 32 * 1024 * 1024;

const ITEM = /^(msg|fc)_([0-9a-f]{32})(?:_(0|[1-9]\d{0,5}))?$/;

/** The id of the message in a response's answer. */
export const messageItemId = (responseId: string): string => responseId.replace("resp_", "msg_");
/** The id of one of the calls in it. */
export const callItemId = (responseId: string, at: number): string => `${responseId.replace("resp_", "fc_")}_${at}`;

/** The response whose answer has an item of this id, if there is one; null for an id of another form. */
export function responseOfItem(itemId: string): string | null {
  const hex = ITEM.exec(itemId)?.[2];
  return hex === undefined ? null : `resp_${hex}`;
}

type Words = Extract<Said, { kind: "assistant" }>;

/** A stored response's answer. */
export interface StoredAnswer {
  said: Words;
  isTainted: boolean;
  bytes: number;
  /** Of the row that it is read from. */
  readBytes: number;
}

/** The answers that one request refers to. */
export interface References {
  /** The text or the call of this item. Throws `not_found`; `invalid_request` for the same item again, or too many of them. */
  find(itemId: string, param: string): Pick<Words, "text" | "calls">;
  /** Of what has been found. */
  isTainted(): boolean;
  bytes(): number;
}

export function createReferences(answerOf: (responseId: string) => StoredAnswer | undefined): References {
  const answers = new Map<string, StoredAnswer>();
  const items = new Set<string>();
  let [isTainted, bytes, readBytes] = [false, 0, 0];

  function read(responseId: string): StoredAnswer | undefined {
    const answer = answerOf(responseId);
    if (answer === undefined) return undefined;
    answers.set(responseId, answer);
    isTainted ||= answer.isTainted;
    bytes += answer.bytes;
    readBytes += answer.readBytes;
    if (answers.size <= MAX_ANSWERS && bytes <= MAX_ANSWER_BYTES && readBytes <= MAX_READ_BYTES) return answer;
    throw new AppError(
      "invalid_request",
      "input: refers to too much of what was answered; send the answers themselves",
      {
        param: "input",
      },
    );
  }

  return {
    find(itemId, param) {
      if (items.has(itemId)) throw new AppError("invalid_request", `${param}: expected each item once`, { param });
      items.add(itemId);
      const responseId = responseOfItem(itemId);
      const answer = responseId === null ? undefined : (answers.get(responseId) ?? read(responseId));
      const part = answer && partOf(answer.said, itemId);
      if (part) return part;
      const message = `${param}: this agent has stored no answer with the item ${itemId.slice(0, 100)}, or no longer`;
      throw new AppError("not_found", message, { param });
    },
    isTainted: () => isTainted,
    bytes: () => bytes,
  };
}

function partOf({ text, calls }: Words, itemId: string): Pick<Words, "text" | "calls"> | null {
  const [, kind, , at] = ITEM.exec(itemId) ?? [];
  if (kind === "msg") return at === undefined && hasMessage({ text, calls }) ? { text, calls: [] } : null;
  const call = calls[Number(at)];
  return call ? { text: "", calls: [call] } : null;
}

/** An answer without a text is calls alone. */
export const hasMessage = ({ text, calls }: Pick<Words, "text" | "calls">): boolean =>
  text !== "" || calls.length === 0;
