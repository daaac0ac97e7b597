import type { GuardedFetch } from "../egress/as-fetch.ts";
import { EgressError } from "../egress/refusal.ts";
import { isTooDeep, MAX_JSON_DEPTH } from "../lib/json-depth.ts";
import { OUTGOING } from "../limits/outgoing.ts";

/** Of one answer, however it comes; `answerBytes` of `OUTGOING.mcp`. */
const { answerBytes: MAX_BYTES, callMs } = OUTGOING.mcp;
/** Besides the call itself: the runtime's own deadlines come first, and say more. */
const SLACK_MS = 5_000;
/** The request that stays open, for notices of changes. */
const LISTEN = "subscriptions/listen";

export interface ServerFetchParts {
  guarded: GuardedFetch;
  /** The server's address: its headers go to this origin, and nowhere else. */
  url: URL;
  /** The owner's headers with the values of their secrets. Throws `EgressError`. */
  headers(): Promise<Readonly<Record<string, string>>>;
}

/**
 * `fetch` for the client of a server, which bounds nothing itself. Answers have at most 5 MiB and are no deeper than JSON
 * may be; an event of a stream is passed on when it is complete.
 */
export function createServerFetch({ guarded, url: { origin }, headers }: ServerFetchParts) {
  return async (address: string | URL, init: RequestInit = {}): Promise<Response> => {
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
    return await bounded(answer);
  };
}

async function bounded(answer: Response): Promise<Response> {
  const { status, headers, body } = answer;
  const type = headers.get("content-type") ?? "";
  if (body === null) return answer;
  if (/^text\/event-stream\b/i.test(type)) {
    return new Response(body.pipeThrough(wholeEvents()), { status, headers });
  }
  const text = await readText(body);
  if (isTooDeep(text)) throw tooDeep();
  return hasNoBody(status) ? new Response(null, { status, headers }) : new Response(text, { status, headers });
}

const hasNoBody = (status: number): boolean => status === 204 || status === 205 || status === 304;

const tooLarge = () => new EgressError("size", `the server's answer is larger than ${MAX_BYTES} bytes`);
const tooDeep = () =>
  new EgressError("protocol", `the server's answer is nested more than ${MAX_JSON_DEPTH} levels deep`);

async function readText(body: ReadableStream<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
    size += piece.length;
    if (size > MAX_BYTES) throw tooLarge();
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

/** What ends an event: an empty line. */
const END = /(?:\r\n|\n|\r(?!\n)){2}/g;

/** Passes on events as they are complete: parsers take longer the more pieces an event comes in. */
function wholeEvents(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let pieces: string[] = [];
  let size = 0;
  return new TransformStream({
    transform(piece, controller) {
      size += piece.length;
      if (size > MAX_BYTES) throw tooLarge();
      const text = decoder.decode(piece, { stream: true });
      // An event's end may be in two pieces.
      const joined = (pieces.at(-1)?.slice(-3) ?? "") + text;
      pieces.push(text);
      if (joined.search(END) < 0) return;
      const known = pieces.join("");
      let at = 0;
      for (const { 0: end, index } of known.matchAll(END)) {
        const event = known.slice(at, index + end.length);
        if (isTooDeep(dataOf(event))) throw tooDeep();
        controller.enqueue(Buffer.from(event));
        at = index + end.length;
      }
      pieces = [known.slice(at)];
    },
  });
}

const dataOf = (event: string): string =>
  event
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length))
    .join("\n");
