import { z } from "zod";
import { isoTime } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { NewMessageRow } from "../messages/queries.ts";
import { type Conversation, FINISH_REASONS, type Message, ORIGINS } from "../messages/schema.ts";
import { BUNDLE_BOUNDS, cut, jsonOf, refusal } from "./format.ts";
import type { Redaction } from "./redaction.ts";

/** Of a name or a title, in characters. */
const MAX_PART = 200;

/** A conversation in a bundle: the first line of its file. */
const Heading = z.lazy(() =>
  z.object({
    title: z.string().min(1).max(MAX_PART).nullable(),
    isDefault: z.boolean(),
    /** What began it; without the id, which means nothing elsewhere. */
    origin: z.enum(ORIGINS).default("user"),
    createdAt: z.iso.datetime(),
  }),
);
export type Heading = z.output<typeof Heading>;

const part = z.string().min(1).max(MAX_PART);
const count = z.int().min(0).nullable();

/** A message in a bundle: one of the lines that follow. It is text, and nothing else. */
const Line = z.lazy(() =>
  z.object({
    role: z.enum(["user", "agent"]),
    message: z.string(),
    sender: z.object({ type: part, id: z.string().max(MAX_PART), name: part }),
    /** Which message of this conversation it answers, counted from 0. */
    inReplyTo: count,
    createdAt: z.iso.datetime(),
    finishReason: z.enum(FINISH_REASONS).nullable(),
    promptTokens: count,
    completionTokens: count,
    /** What caused it, if it was neither a person nor an answer to one. */
    origin: z.enum(ORIGINS).nullable().default(null),
  }),
);

/** How many earlier messages a reply may lie behind; an agent's queue is shorter. */
const MAX_UNANSWERED = 1_000;

const lineOf = (value: unknown): string => `${JSON.stringify(value)}\n`;

/** The value of a secret may stand in any name, and what takes its place may be longer. */
const saidShortly = async (text: string, redaction: Said): Promise<string> => cut(await redaction.text(text), MAX_PART);

type Said = Pick<Redaction, "text">;

export async function headingOf({ title, isDefault, originType, createdAt }: Conversation, redaction: Said) {
  const said = title === null ? null : await saidShortly(title, redaction);
  return lineOf({ title: said, isDefault, origin: originType, createdAt: isoTime(createdAt) } satisfies Heading);
}

/** The same message with what may leave the host. */
export async function redactMessage(row: Message, redaction: Said): Promise<Message> {
  return {
    ...row,
    text: await redaction.text(row.text),
    senderId: await saidShortly(row.senderId, redaction),
    senderName: await saidShortly(row.senderName, redaction),
  };
}

/** Writes a conversation's messages in their order. */
export function createLineWriter() {
  const numbers = createNumbers<number>();
  let next = 0;
  return (row: Message): string => {
    const number = next++;
    if (row.role === "user") numbers.set(row.messageId, number);
    return lineOf({
      role: row.role,
      message: row.text,
      sender: { type: row.senderType, id: row.senderId, name: row.senderName },
      inReplyTo: row.inReplyTo === null ? null : (numbers.get(row.inReplyTo) ?? null),
      createdAt: isoTime(row.createdAt),
      finishReason: row.finishReason,
      promptTokens: row.promptTokens,
      completionTokens: row.completionTokens,
      origin: row.originType,
    } satisfies z.output<typeof Line>);
  };
}

/** Throws `invalid_request`. */
export function parseHeading(bytes: Uint8Array): Heading {
  const { title, ...rest } = parsed(Heading, bytes);
  return { title: title === null ? null : visible(title), ...rest };
}

/**
 * Reads a conversation's messages in their order, as messages of an agent that is `arriving`. They get new ids, and runs
 * that are nowhere: nothing of them can be run again. What is said to be the agent's may be a stranger's.
 */
export function createLineReader(arriving: { agentId: string; conversationId: string; now: number }) {
  const asked = createNumbers<{ messageId: string; runId: string }>();
  const { agentId, conversationId, now } = arriving;
  let next = 0;
  return (bytes: Uint8Array): NewMessageRow => {
    const line = parsed(Line, bytes);
    const number = next++;
    const messageId = newId("msg");
    const question = line.inReplyTo === null ? undefined : asked.get(String(line.inReplyTo));
    const runId = question?.runId ?? newId("run");
    if (line.role === "user") asked.set(String(number), { messageId, runId });
    return {
      messageId,
      agentId,
      conversationId,
      runId,
      role: line.role,
      text: line.message.toWellFormed(),
      senderType: visible(line.sender.type),
      senderId: line.role === "agent" ? agentId : visible(line.sender.id),
      senderName: visible(line.sender.name),
      inReplyTo: question?.messageId ?? null,
      finishReason: line.finishReason,
      promptTokens: line.promptTokens,
      completionTokens: line.completionTokens,
      // Nothing was said in the future: activity is sorted by it.
      createdAt: Math.min(Date.parse(line.createdAt), now),
      // A program's question may be what its functions gave.
      tainted: line.role === "agent" || line.origin === "agent" || line.origin === "openai",
      originType: line.origin,
      originId: null,
    };
  };
}

function parsed<S extends z.ZodType>(form: S, bytes: Uint8Array): z.output<S> {
  const result = form.safeParse(jsonOf(bytes, "history"));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw refusal(`history: expected another value for ${(issue?.path ?? []).map(String).join(".").slice(0, 100)}`);
}

const visible = (text: string): string => text.toWellFormed().replaceAll(/\p{Cc}/gu, " ");

/** A map that forgets the oldest. */
function createNumbers<Value>() {
  const values = new Map<string, Value>();
  return {
    get: (key: string) => values.get(key),
    set(key: string, value: Value): void {
      values.set(key, value);
      for (const oldest of values.keys()) {
        if (values.size <= MAX_UNANSWERED) break;
        values.delete(oldest);
      }
    },
  };
}

const NEWLINE = 0x0a;

/** The lines of a file, without their ends. Throws `invalid_request` for one that is too long. */
export async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let kept: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      yield Buffer.concat([...kept, chunk.subarray(from, end)]);
      [kept, size, from] = [[], 0, end + 1];
    }
    if (from === chunk.byteLength) continue;
    kept.push(Buffer.from(chunk.subarray(from)));
    size += chunk.byteLength - from;
    if (size > BUNDLE_BOUNDS.messageBytes) {
      throw refusal(`history: expected lines of at most ${BUNDLE_BOUNDS.messageBytes} bytes`);
    }
  }
  if (size > 0) yield Buffer.concat(kept);
}
