import type { GuardedFetch } from "../egress/as-fetch.ts";
import { EgressError } from "../egress/refusal.ts";
import { isTooComplex, MAX_JSON_DEPTH } from "../lib/json-depth.ts";
import { OUTGOING } from "../limits/outgoing.ts";

/** Of one answer, however it comes; `answerBytes` of `OUTGOING.mcp`. */
const { answerBytes: MAX_BYTES, callMs } = OUTGOING.mcp;
/** Objects and lists of an answer: five megabytes of empty ones would hold everybody up for a quarter of a second. */
const MAX_PARTS = 50_000;
/** All that it holds: reading six hundred thousand members of an object takes half a second. */
const MAX_VALUES = 200_000;
/**
 * Elements of a list, and values in all, of what the package checks: it keeps an error, or several, for each that is wrong.
 * Fifty thousand wrong parts of an answer would hold everybody up for seconds.
 */
const MAX_ELEMENTS = 1_000;
const MAX_CHECKED = 20_000;
/** What it takes as it comes: a tool's data, and the schemas of inputs and outputs. */
const UNCHECKED = new Set(["structuredContent", "_meta", "properties", "outputSchema"]);
/** Events of one stream that say something: each is checked as a message, also where it is none. */
const MAX_EVENTS = 2_000;
/** Besides the call itself: the runtime's own deadlines come first, and say more. */
const SLACK_MS = 5_000;
/** The request that stays open, for notices of changes. */
export const LISTEN = "subscriptions/listen";

export interface ServerFetchParts {
  guarded: GuardedFetch;
  /** The server's address: its headers go to this origin, and nowhere else. */
  url: URL;
  /** The owner's headers with the values of their secrets. Throws `EgressError`. */
  headers(): Promise<Readonly<Record<string, string>>>;
}

/** `fetch`, which says why it has left the stream of an answer: whoever reads that learns only that it has ended. */
export type ServerFetch = (
  address: string | URL,
  init?: RequestInit,
  onLeft?: (why: EgressError) => void,
) => Promise<Response>;

/**
 * `fetch` for the client of a server, which bounds nothing itself. Answers have at most 5 MiB, are no deeper than JSON may
 * be, and have no long lists; an event of a stream is passed on when it is complete.
 */
export function createServerFetch({ guarded, url: { origin }, headers }: ServerFetchParts): ServerFetch {
  return async (address, init = {}, onLeft = () => {}) => {
    const sent = new Headers(init.headers);
    const isOwn = new URL(address).origin === origin;
    for (const [name, value] of Object.entries(isOwn ? await headers() : {})) {
      // What the protocol itself has set, an access token among it, comes first.
      if (!sent.has(name)) sent.set(name, value);
    }
    const stays = (init.method ?? "GET") === "GET" ? isOwn : sent.get("mcp-method") === LISTEN;
    const signals = [init.signal, stays ? null : AbortSignal.timeout(callMs + SLACK_MS)].filter((one) => one != null);
    const signal = AbortSignal.any(signals);
    const answer = await guarded(address, { ...init, headers: sent, signal });
    // The package reads whatever comes as what it has asked for.
    if (answer.ok && answer.body !== null && sent.get("accept") === STREAM && !isStream(answer)) {
      throw new EgressError("protocol", "the server's answer is no event stream");
    }
    return await bounded(answer, onLeft);
  };
}

const STREAM = "text/event-stream";
const isStream = ({ headers }: Response): boolean => /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");

async function bounded(answer: Response, onLeft: (why: EgressError) => void): Promise<Response> {
  const { status, headers, body } = answer;
  if (body === null) return answer;
  if (isStream(answer)) {
    return new Response(body.pipeThrough(wholeEvents(onLeft)), { status, headers });
  }
  const text = await readText(body);
  requireModest(text);
  return hasNoBody(status) ? new Response(null, { status, headers }) : new Response(text, { status, headers });
}

const hasNoBody = (status: number): boolean => status === 204 || status === 205 || status === 304;

const tooLarge = () => new EgressError("size", `the server's answer is larger than ${MAX_BYTES} bytes`);

function requireModest(json: string): void {
  if (isTooComplex(json, MAX_JSON_DEPTH, MAX_PARTS, MAX_VALUES)) {
    throw new EgressError(
      "protocol",
      `the server's answer is nested more than ${MAX_JSON_DEPTH} levels deep, or has more than ${MAX_PARTS} parts or ` +
        `${MAX_VALUES} values`,
    );
  }
  let message: unknown;
  try {
    // A byte order mark is no part of what the package reads.
    message = JSON.parse(json.replace(/^\uFEFF/, ""));
  } catch {
    // The package refuses it too.
    return;
  }
  requireShort(message);
}

/** Looks at what the package checks, and at no more of it than may be there. */
function requireShort(message: unknown): void {
  let checked = 0;
  const lookAt = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const list = Array.isArray(value) ? value : null;
    const names = list === null ? Object.keys(value) : [];
    checked += list?.length ?? names.length;
    if (checked > MAX_CHECKED || (list !== null && list.length > MAX_ELEMENTS)) {
      throw new EgressError(
        "protocol",
        `the server's answer has a list of more than ${MAX_ELEMENTS} elements, or more than ${MAX_CHECKED} values`,
      );
    }
    list?.forEach(lookAt);
    for (const name of names) if (!UNCHECKED.has(name)) lookAt((value as Record<string, unknown>)[name]);
  };
  lookAt(message);
}

async function readText(body: ReadableStream<Uint8Array>): Promise<string> {
  let bytes = Buffer.allocUnsafe(64 * 1024);
  let size = 0;
  for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
    const next = size + piece.length;
    if (next > MAX_BYTES) throw tooLarge();
    // Twice as much each time: a server may send its answer byte by byte.
    if (next > bytes.length) bytes = Buffer.concat([bytes], Math.max(2 * bytes.length, next));
    bytes.set(piece, size);
    size = next;
  }
  return bytes.toString("utf8", 0, size);
}

/** What ends an event: an empty line. */
const END = /(?:\r\n|\n|\r(?!\n)){2}/g;

/** Passes on events as they are complete: parsers take longer the more pieces an event comes in. */
function wholeEvents(onLeft: (why: EgressError) => void): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  let size = 0;
  let events = 0;
  let isFirst = true;
  function pass(piece: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void {
    size += piece.length;
    if (size > MAX_BYTES) throw tooLarge();
    const text = decoder.decode(piece, { stream: true });
    // An event's end may be in two pieces.
    const joined = (pieces.at(-1)?.slice(-3) ?? "") + text;
    pieces.push(text);
    if (joined.search(END) < 0) return;
    const known = pieces.join("");
    const complete: string[] = [];
    let at = 0;
    // What came before has been looked through.
    END.lastIndex = Math.max(0, known.length - joined.length);
    for (let end = END.exec(known); end !== null; end = END.exec(known)) {
      const event = isFirst ? withoutMarks(known.slice(at, END.lastIndex)) : known.slice(at, END.lastIndex);
      isFirst = false;
      const data = dataOf(event);
      requireModest(data);
      if (data !== "" && ++events > MAX_EVENTS) {
        throw new EgressError("size", `the server's answer has more than ${MAX_EVENTS} events`);
      }
      complete.push(event);
      at = END.lastIndex;
    }
    controller.enqueue(Buffer.from(complete.join("")));
    pieces = [known.slice(at)];
  }
  return new TransformStream({
    transform(piece, controller) {
      try {
        pass(piece, controller);
      } catch (error) {
        if (error instanceof EgressError) onLeft(error);
        throw error;
      }
    },
  });
}

/** Byte order marks, each in both ways of reading it: parsers skip them, and what they would read is what is checked. */
const withoutMarks = (text: string): string => text.replace(/^(?:\uFEFF|\u00EF\u00BB\u00BF)+/, "");

const LINE_ENDS = /\r\n|\n|\r/;
const DATA = "data:";

/** The JSON of an event. Lines mostly end as they should, and splitting at those is ten times as fast. */
const dataOf = (event: string): string =>
  event
    .split(event.includes("\r") ? LINE_ENDS : "\n")
    .filter((line) => line.startsWith(DATA))
    .map((line) => line.slice(DATA.length))
    .join("\n");
