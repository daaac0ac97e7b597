/** A hub of models with the API of Hugging Face. What it answers is checked: it decides no path and no size here. */
import { z } from "zod";
import { readBoundedText } from "../../lib/bounded-text.ts";
import { OUTGOING } from "../../limits/outgoing.ts";

export interface HubOptions {
  /** Without a `/` at its end. */
  url: string;
  /** Sent to the hub itself only, never to where it redirects. */
  token: string | null;
  /** The longest silence; by default that of `OUTGOING`. */
  silentMs?: number;
}

/** The hub refused, or answered with what it must not. The message says what to do. */
export class HubError extends Error {
  constructor(
    message: string,
    /** Whether the same request may succeed later. */
    readonly isPassing = false,
  ) {
    super(message);
  }
}

export interface HubFile {
  path: string;
  size: number;
  /** Of the content. Large files have a SHA-256, small ones Git's SHA-1 of the content with a header. */
  hash: { kind: "sha256" | "git"; hex: string };
}

export interface Hub {
  /** The commit that `main` is, in hexadecimal. Throws `HubError`. */
  revision(repository: string, signal: AbortSignal): Promise<string>;
  /** Throws `HubError`. */
  files(repository: string, revision: string, signal: AbortSignal): Promise<HubFile[]>;
  /** A file's bytes from an offset on; `from` is 0 if the server sends it from the beginning. Throws `HubError`. */
  open(
    repository: string,
    revision: string,
    path: string,
    from: number,
    signal: AbortSignal,
  ): Promise<{ from: number; chunks: AsyncIterable<Uint8Array> }>;
}

/** `organisation/name`, or `name` alone as of old models. */
export const REPOSITORY = /^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,95}\/)?[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/;

const MAX_REDIRECTS = 5;
const MAX_PAGES = 10;

const Revision = z.object({ sha: z.string().regex(/^[0-9a-f]{40}$/) });
const Hex = z.string().regex(/^[0-9a-f]{40,64}$/);
const Tree = z.array(
  z.object({
    type: z.string(),
    path: z.string().max(1_000),
    size: z.int().nonnegative().optional(),
    oid: Hex,
    lfs: z.object({ oid: Hex.length(64), size: z.int().nonnegative() }).optional(),
  }),
);

export function createHub({ url, token, silentMs = OUTGOING.hub.deadlineMs }: HubOptions): Hub {
  const origin = new URL(url).origin;

  /** Follows redirects by itself: the token is for the hub alone, and nothing goes back from https to http. */
  async function get(address: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    let target = new URL(address);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const own = token !== null && target.origin === origin ? { Authorization: `Bearer ${token}` } : {};
      const answer = await fetch(target, {
        // Compressed bytes have other offsets.
        headers: { "Accept-Encoding": "identity", ...headers, ...own },
        redirect: "manual",
        signal,
      }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw new HubError(`${target.origin} cannot be reached (${wordsOf(error)})`, true);
      });
      const location = answer.status >= 300 && answer.status < 400 ? answer.headers.get("location") : null;
      if (location === null) return answer;
      void answer.body?.cancel();
      const next = URL.canParse(location, target.href) ? new URL(location, target.href) : null;
      const isAllowed = next?.protocol === "https:" || (next?.protocol === "http:" && target.protocol === "http:");
      if (next === null || !isAllowed) throw new HubError(`${target.origin} redirects to where nothing may be fetched`);
      target = next;
    }
    throw new HubError(`${origin} redirects in circles`);
  }

  function refusal(status: number, what: string): HubError {
    if (status === 401 || status === 403) {
      const need =
        token === null ? "set ROOST_MODEL_HUB_TOKEN if it needs one" : "ROOST_MODEL_HUB_TOKEN may not see it";
      return new HubError(`${origin} does not give out ${what} (${status}): check the name; ${need}`);
    }
    if (status === 404) return new HubError(`${origin} has no ${what}; check the name`);
    const isPassing = status === 408 || status === 429 || status >= 500;
    return new HubError(`${origin} answered ${status} for ${what}; try again later`, isPassing);
  }

  async function getJson<T>(address: string, schema: z.ZodType<T>, what: string, caller: AbortSignal) {
    const signal = AbortSignal.any([caller, AbortSignal.timeout(silentMs)]);
    const answer = await get(address, { Accept: "application/json" }, signal).catch(late(caller));
    if (!answer.ok) throw refusal(answer.status, what);
    const text = await readBoundedText(answer, OUTGOING.hub.answerBytes).catch(late(caller));
    const parsed = schema.safeParse(jsonIn(text));
    if (!parsed.success)
      throw new HubError(`${origin} answered for ${what} with something else; check ROOST_MODEL_HUB`);
    return { data: parsed.data, next: nextIn(answer.headers.get("link"), address) };
  }

  return {
    async revision(repository, signal) {
      const address = `${url}/api/models/${repository}/revision/main`;
      return (await getJson(address, Revision, `model ${repository}`, signal)).data.sha;
    },
    async files(repository, revision, signal) {
      const files: HubFile[] = [];
      let address: string | null = `${url}/api/models/${repository}/tree/${revision}?recursive=true`;
      for (let page = 0; address !== null; page++) {
        if (page === MAX_PAGES) throw new HubError(`${repository} has more files than a model needs`);
        const { data, next }: { data: z.output<typeof Tree>; next: string | null } = await getJson(
          address,
          Tree,
          `list of the files of ${repository}`,
          signal,
        );
        for (const { type, path, size, oid, lfs } of data) {
          if (type !== "file") continue;
          if (lfs) files.push({ path, size: lfs.size, hash: { kind: "sha256", hex: lfs.oid } });
          else if (size !== undefined) files.push({ path, size, hash: { kind: "git", hex: oid } });
        }
        // The next page is asked for where this one came from.
        address = next !== null && new URL(next).origin === origin ? next : null;
      }
      return files;
    },
    async open(repository, revision, path, from, signal) {
      const quiet = watchSilence(signal, silentMs);
      const what = `${path} of ${repository}`;
      try {
        const range: Record<string, string> = from > 0 ? { Range: `bytes=${from}-` } : {};
        const answer = await get(`${url}/${repository}/resolve/${revision}/${path}`, range, quiet.signal);
        if (answer.status === 206 && !answer.headers.get("content-range")?.startsWith(`bytes ${from}-`)) {
          throw new HubError(`${origin} sent another part of ${what} than was asked for`, true);
        }
        if (!answer.ok || answer.body === null) throw refusal(answer.status, what);
        return { from: answer.status === 206 ? from : 0, chunks: readWatched(answer.body, quiet, what) };
      } catch (error) {
        quiet.end();
        throw quiet.isSilent() ? silence(origin, what) : error;
      }
    },
  };
}

/** A timeout becomes an error that says so. */
const late =
  (caller: AbortSignal) =>
  (error: unknown): never => {
    caller.throwIfAborted();
    if (error instanceof HubError) throw error;
    throw new HubError(`the hub did not answer (${wordsOf(error)})`, true);
  };

const silence = (origin: string, what: string): HubError => new HubError(`${origin} went silent over ${what}`, true);

interface Quiet {
  signal: AbortSignal;
  /** Something has arrived. */
  heard(): void;
  isSilent(): boolean;
  end(): void;
}

function watchSilence(caller: AbortSignal, silentMs: number): Quiet {
  const own = new AbortController();
  let timer = setTimeout(() => own.abort(), silentMs);
  return {
    signal: AbortSignal.any([caller, own.signal]),
    heard() {
      clearTimeout(timer);
      timer = setTimeout(() => own.abort(), silentMs);
    },
    isSilent: () => own.signal.aborted && !caller.aborted,
    end: () => clearTimeout(timer),
  };
}

async function* readWatched(
  body: ReadableStream<Uint8Array>,
  quiet: Quiet,
  what: string,
): AsyncGenerator<Uint8Array, void> {
  try {
    for await (const chunk of body) {
      quiet.heard();
      yield chunk;
    }
  } catch (error) {
    if (quiet.isSilent()) throw silence("the hub", what);
    quiet.signal.throwIfAborted();
    throw new HubError(`the connection was cut while ${what} arrived (${wordsOf(error)})`, true);
  } finally {
    quiet.end();
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The address after `rel="next"`, as in RFC 8288. */
function nextIn(link: string | null, base: string): string | null {
  const [, target] = /<([^>]+)>;\s*rel="next"/.exec(link ?? "") ?? [];
  return target !== undefined && URL.canParse(target, base) ? new URL(target, base).href : null;
}

const wordsOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
};
