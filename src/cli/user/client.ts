import {
  type components,
  createRoost,
  type Roost,
  RoostError,
  type RoostOptions,
} from "../../../clients/typescript/src/index.ts";
import { OUTGOING } from "../../limits/outgoing.ts";
import { shellWord } from "../shell-word.ts";

export { RoostError };

/** Where `roost serve` listens by default. */
export const DEFAULT_URL = "http://127.0.0.1:7373";

/** The records of the API, by name. */
export type Records = components["schemas"];

/** A client for a server's API, with one account's credential. */
export type Client = Roost & { readonly url: string };

const { deadlineMs: DEADLINE_MS, answerBytes } = OUTGOING.command;

export interface ClientOptions {
  deadlineMs?: number;
  /** Told of each part of a file that is sent. Both are bytes. */
  onSent?: (done: number, total: number) => void;
}

/** `credential` is an API key or a token; null for requests that need none. */
export function createClient(url: string, credential: string | null, options: ClientOptions = {}): Client {
  const { deadlineMs = DEADLINE_MS, onSent } = options;
  // Of such a request, a runtime says only that it could not be sent.
  if (credential !== null && !CREDENTIAL.test(credential)) {
    throw new RoostError("unauthorized", "the API key is wrong: it has a character that no key has", { server: url });
  }
  const telling = onSent && { fetch: fetchTelling(onSent) };
  // Whoever waits at the terminal is told at once.
  return { url, ...createRoost({ url, credential, deadlineMs, maxAnswerBytes: answerBytes, retries: 0, ...telling }) };
}

/** What a header takes, without white space. */
const CREDENTIAL = /^[!-~]+$/;

const PART_BYTES = 64 * 1024;

/** `fetch` that sends a file in parts, each when the connection takes it. */
const fetchTelling =
  (onSent: NonNullable<ClientOptions["onSent"]>): NonNullable<RoostOptions["fetch"]> =>
  (url, init) => {
    const file = init.body;
    if (!(file instanceof Uint8Array)) return fetch(url, init);
    let done = 0;
    const body = new ReadableStream({
      pull(parts) {
        onSent(done, file.byteLength);
        if (done === file.byteLength) return parts.close();
        const part = file.subarray(done, done + PART_BYTES);
        done += part.byteLength;
        parts.enqueue(part);
      },
    });
    const headers = { ...(init.headers as Record<string, string>), "Content-Length": String(file.byteLength) };
    return fetch(url, { ...init, body, headers });
  };

/** Whether the server said so itself. */
export const isRefusal = (error: unknown): error is RoostError =>
  error instanceof RoostError && error.requestId !== null;

/** The command that signs in to a server. */
export const loginAt = (url: string): string => `roost login${url === DEFAULT_URL ? "" : ` --url ${url}`}`;

/** What a command was given, as it was typed. */
export interface Typed {
  instance?: string | undefined;
  agent?: string | undefined;
}

/** What to do about an error, if the server's message does not say. */
const NEXT: Record<string, (typed: Typed) => string> = {
  instance_not_ready: ({ instance = "INSTANCE" }) => `roost instance start ${shellWord(instance)}`,
  redirected: () => "give that address with --url",
  timeout: () => "is the server running there?",
  disconnected: ({ instance = "INSTANCE", agent = "AGENT" }) =>
    `to see what happened once it runs again: roost events ${shellWord(instance)} ${shellWord(agent)} --after 0`,
};

/** What a person is told about an error, and what to do about it: each once, whatever of it the server says. */
export function explainError(error: RoostError, typed: Typed = {}): { message: string; next: string | null } {
  const { code, status, server, requestId, retryAfterSeconds } = error;
  const saysWhen = /\btry again (in|after) \d/.test(error.message);
  const wait = status === 429 && !saysWhen ? retryAfterSeconds : null;
  const said = error.message.replace(WRONG_CREDENTIAL, "the API key is wrong or has expired");
  const told = wait === null ? said : said.replace(TRY_AGAIN, "");
  return { message: requestId === null ? told : `${told} (request ${requestId})`, next: next() };

  function next(): string | null {
    if (wait !== null) return `try again in ${waitInWords(wait)}`;
    if (saysWhen || TRY_AGAIN.test(error.message)) return null;
    if (code === "unauthorized" && server !== null) return `sign in: ${loginAt(server)}`;
    // A login with an e-mail address makes a key that may decide; one that was given may not by default.
    if (code === "forbidden" && server !== null && NEEDS_APPROVE.test(error.message)) {
      return `sign in with your e-mail address: ${loginAt(server)}`;
    }
    if (code === "unexpected_answer")
      return `is it a Roost server?${status === 0 ? "" : " Give its address with --url"}`;
    if (code !== "unreachable") return NEXT[code]?.(typed) ?? null;
    const untrusted = certificateProblem(error.cause);
    if (untrusted !== null) return untrusted;
    return status === 0
      ? "is the server running there? Start one with `roost serve`, or name another with --url"
      : "is the server behind it running?";
  }
}

/** What is wrong with the server's certificate, and what to do about one of its owner's own; null if nothing is. */
function certificateProblem(cause: unknown): string | null {
  if (!(cause instanceof Error && "code" in cause) || !/CERT|SIGNATURE/.test(String(cause.code))) return null;
  const isUnknown = /SELF_SIGNED|ISSUER|SIGNATURE/.test(String(cause.code));
  const trust = isUnknown ? "; if it is the server's own, save it and set NODE_EXTRA_CA_CERTS to that file" : "";
  return `its certificate is refused: ${cause.message}${trust}`;
}

/** How a server answers whoever may not know how a credential is sent. A command sends one whenever it is needed. */
const WRONG_CREDENTIAL = /^missing or invalid credentials: .*/;

/** How a server says that a key may not decide about what agents ask for. */
const NEEDS_APPROVE = /\bthe scope approve\b/;

/** How a server ends a message when it does not say when. */
const TRY_AGAIN = /[;:] try again( later| in a moment| in a while)?\.?$/;

/** `90 s`, `16 minutes`, `16 hours`: never less than it is. */
function waitInWords(seconds: number): string {
  if (seconds <= 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes <= 120 ? `${minutes} minutes` : `${Math.ceil(minutes / 60)} hours`;
}
