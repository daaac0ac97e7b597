/**
 * The host's side of the embedding model, which has a process of its own: one thread computes its vectors while another
 * process writes answers, so neither waits for the other. It is given one text at a time: what somebody waits for
 * never stands behind texts that are to be found later, and what all answers wait for stands behind nothing.
 */
import { ModelError } from "../engine.ts";
import type { Supervisor } from "./supervisor.ts";

type WhoWaits = "everybody" | "somebody" | "nobody";

export interface EmbedOptions {
  /** Who waits for it: the process that writes everybody's answers, or somebody with a question; by default nobody. */
  whoWaits?: WhoWaits;
  /** How many tokens were read for each text. */
  onTokens?(count: number): void;
  /** For the log. */
  requestId?: string | undefined;
}

/** A unit vector of 384 dimensions for each text. Throws `ModelError`, or the signal's reason. */
export type EmbedTexts = (texts: string[], signal: AbortSignal, options?: EmbedOptions) => Promise<Float32Array[]>;

/** More are refused. */
const MAX_WAITING = 512;
/** A text of the usual length takes it 30 ms; more would be taken from answers. */
export const EMBEDDING_THREADS = 1;

interface Waiting {
  texts: string[];
  vectors: Float32Array[];
  options: EmbedOptions;
  resolve(vectors: Float32Array[]): void;
  reject(error: unknown): void;
}

export function createEmbeddings(supervisor: Pick<Supervisor, "submit">): EmbedTexts {
  /** In the order of their turns. */
  const lines: Record<WhoWaits, Set<Waiting>> = { everybody: new Set(), somebody: new Set(), nobody: new Set() };
  let isBusy = false;
  let lastId = 0;

  const lineOf = ({ options }: Waiting) => lines[options.whoWaits ?? "nobody"];

  function next(): void {
    if (isBusy) return;
    const [one] = Object.values(lines).find(({ size }) => size > 0) ?? [];
    if (one === undefined) return;
    isBusy = true;
    const line = lineOf(one);
    // Of several with many texts, each has one embedded in turn.
    line.delete(one);
    line.add(one);
    const end = (settle?: () => void) => {
      isBusy = false;
      if (settle !== undefined && line.delete(one)) settle();
      next();
    };
    supervisor.submit({
      request: { type: "embed", id: ++lastId, texts: one.texts.slice(one.vectors.length, one.vectors.length + 1) },
      whose: { requestId: one.options.requestId },
      onReply(reply) {
        if (reply.type === "failed") return end(() => one.reject(failed(reply.message)));
        if (reply.type !== "embedded") return;
        one.options.onTokens?.(reply.tokens);
        one.vectors.push(...reply.vectors);
        end(one.vectors.length < one.texts.length ? undefined : () => one.resolve(one.vectors));
      },
      onFailure: (error) => end(() => one.reject(error)),
    });
  }

  return async (given, signal, options = {}) => {
    signal.throwIfAborted();
    if (given.length === 0) return [];
    const { promise, resolve, reject } = Promise.withResolvers<Float32Array[]>();
    const one: Waiting = { texts: given, vectors: [], options, resolve, reject };
    const line = lineOf(one);
    if (line.size >= MAX_WAITING) throw new ModelError("unavailable", BUSY);
    const onAbort = () => {
      line.delete(one);
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    line.add(one);
    next();
    return promise.finally(() => signal.removeEventListener("abort", onAbort));
  };
}

const BUSY = "Too many texts wait for the embedding model. Try again in a moment.";

const failed = (reason: string) =>
  new ModelError("broken", "The embedding model could not read the text. Try again in a moment.", { detail: reason });
