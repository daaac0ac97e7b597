import { messageOf } from "../lib/message-of.ts";
import { createFairPlaces } from "../limits/fair-places.ts";
import type { FairTurns } from "../limits/fair-turns.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import { type AddressKind, kindFromHere } from "./address.ts";
import { createExchange, type Exchange, type OpenAnswer } from "./exchange.ts";
import { type AnswerHead, valuesOf } from "./head.ts";
import type { EgressPolicy } from "./policy.ts";
import { EgressError, type EgressFault, isRefusal } from "./refusal.ts";
import { type Message, type PreparedMessage, redirected } from "./request.ts";
import type { Resolve } from "./resolve.ts";
import { shownHost, type Target, targetOf } from "./target.ts";
import { createWholeBodies } from "./whole-body.ts";

/** A request that an agent causes. */
export interface EgressRequest {
  url: string;
  /** A GET if absent. */
  message?: Message;
  /**
   * Makes the message instead, once the first host was judged: so secrets are read only for a host that may be asked. What
   * it throws is this request's failure.
   */
  prepare?(target: Target): Promise<PreparedMessage>;
  accountId: string;
  instanceId: string;
  /** For the log; absent for what no run asks. */
  runId?: string | undefined;
  signal: AbortSignal;
  /** Asked about each host, those of redirects too, before its name is resolved: throws `EgressError` to refuse it. */
  requireAllowed?(target: Target): void;
}

export interface EgressAnswer extends AnswerHead {
  /** After redirects. */
  url: string;
  /** Decoded; at most 5 MiB. */
  body: Buffer;
}

/** What was refused: `host` is the one that was asked for, which a stranger may have written. */
export interface Refusal {
  accountId: string;
  instanceId: string;
  runId: string | undefined;
  host: string;
  fault: EgressFault;
}

/** The one way out for everything that an agent causes (docs/contract/security.md, Requests of agents). */
export interface Egress {
  /** Throws `EgressError` for everything that is no complete answer of a server. */
  send(request: EgressRequest): Promise<EgressAnswer>;
  /**
   * The answer to one message, redirects included, as it comes: at most 64 MiB, until the signal aborts. It counts for none
   * of the account's connections: whoever calls this bounds how many there are, and how long they are silent.
   */
  open(request: Omit<EgressRequest, "prepare">): Promise<OpenAnswer>;
  readonly policy: EgressPolicy;
  /** Requests so far by outcome: `answered`, or what went wrong. */
  outcomes(): ReadonlyMap<EgressFault | "answered", number>;
  connections(): number;
}

export interface EgressParts {
  policy: EgressPolicy;
  onRefused?(refusal: Refusal): void;
  /** Answers are read in their account's turns, with what its agents do besides; without them as they come. */
  turns?: FairTurns | undefined;
  /** Replaced in tests: another resolver, other judgements of addresses, another certificate authority (PEM). */
  resolve?: Resolve;
  kindOf?(address: string): AddressKind;
  ca?: string;
  deadlineMs?: number;
}

const { deadlineMs: DEADLINE_MS, answerBytes: MAX_ANSWER, redirects: MAX_REDIRECTS } = OUTGOING.agents;
/** A model's answer: larger than any that it could write. */
const MAX_STREAM = 64 * 1024 * 1024;
/**
 * What a byte of an answer is charged: 10 ms for a MiB, which is decrypted, decompressed, parsed, becomes garbage, and of
 * which some is kept. The search for secrets in it is counted where it is done (src/limits/slices.ts).
 */
const BYTE_MS = 1 / 104_858;
const GET: Message = { method: "GET", headers: {}, body: null };
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export function createEgress(parts: EgressParts): Egress {
  const { policy, kindOf = kindFromHere, deadlineMs = DEADLINE_MS } = parts;
  const connections = createFairPlaces(OUTGOING.agents.places);
  const readWhole = createWholeBodies();
  const outcomes = new Map<EgressFault | "answered", number>();
  const count = (outcome: EgressFault | "answered") => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);

  const connect = createExchange({ policy, resolve: parts.resolve, kindOf, ca: parts.ca });

  async function exchange(accountId: string, ...of: Parameters<Exchange>): Promise<OpenAnswer> {
    const answer = await connect(...of);
    return { ...answer, body: parts.turns ? inTurns(answer.body, accountId, parts.turns) : answer.body };
  }

  async function follow(request: EgressRequest, judge: Judge, signal: AbortSignal): Promise<EgressAnswer> {
    let target = targetOf(request.url);
    judge(target);
    const prepared = await request.prepare?.(target);
    if (prepared !== undefined) target.url.search = prepared.search;
    let next: Message = prepared ?? request.message ?? GET;
    for (let redirects = 0; ; redirects++) {
      const answer = await exchange(request.accountId, target, next, MAX_ANSWER, signal);
      const { status, headers, body } = answer;
      const [location] = valuesOf(answer, "location");
      if (!REDIRECTS.has(status) || location === undefined) {
        return { status, headers, url: target.url.href, body: await readWhole(body, request.accountId, signal) };
      }
      answer.close();
      if (redirects === MAX_REDIRECTS) {
        throw new EgressError("redirect", `the server redirects more than ${MAX_REDIRECTS} times`);
      }
      const to = targetOf(Buffer.from(location, "latin1").toString(), target.url);
      next = redirected(next, status, target, to);
      target = to;
      judge(target);
    }
  }

  async function inPlace<T>(accountId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const release = await connections.take(accountId, signal);
    if (release === null) throw new EgressError("busy", "too many requests of this account wait: try again later");
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Counts how the work ends, and reports what was refused. */
  async function settle<T>(
    { accountId, instanceId, runId, requireAllowed }: EgressRequest,
    signal: AbortSignal,
    work: (judge: Judge) => Promise<T>,
  ): Promise<T> {
    let asked = "";
    try {
      const result = await work((target) => {
        asked = shownHost(target);
        requireAllowed?.(target);
        policy.requirePermitted(target);
      });
      count("answered");
      return result;
    } catch (thrown) {
      const error = egressErrorOf(signal.aborted ? signal.reason : thrown, signal.aborted);
      count(error.fault);
      if (isRefusal(error.fault)) parts.onRefused?.({ accountId, instanceId, runId, host: asked, fault: error.fault });
      throw error;
    }
  }

  return {
    policy,
    outcomes: () => outcomes,
    connections: connections.inUse,
    async send(request) {
      const end = new AbortController();
      const { signal } = end;
      const late = new EgressError("deadline", `there was no complete answer within ${deadlineMs / 1000} seconds`);
      const timer = setTimeout(() => end.abort(late), deadlineMs);
      const cancel = () => end.abort(cancelled());
      request.signal.addEventListener("abort", cancel, { once: true });
      if (request.signal.aborted) cancel();
      try {
        return await settle(request, signal, (judge) =>
          inPlace(request.accountId, signal, () => follow(request, judge, signal)),
        );
      } finally {
        clearTimeout(timer);
        request.signal.removeEventListener("abort", cancel);
      }
    },
    open: ({ signal, ...request }) =>
      settle({ ...request, signal }, signal, async (judge) => {
        signal.throwIfAborted();
        const target = targetOf(request.url);
        judge(target);
        return await exchange(request.accountId, target, request.message ?? GET, MAX_STREAM, signal);
      }),
  };
}

/** However much the servers of one account send, and however fast, it is read in the account's share of the thread. */
async function* inTurns(body: AsyncGenerator<Buffer>, accountId: string, turns: FairTurns): AsyncGenerator<Buffer> {
  for await (const piece of body) {
    turns.spend(accountId, () => {}, piece.length * BYTE_MS);
    await turns.enter(accountId);
    yield piece;
  }
}

type Judge = (target: Target) => void;

const cancelled = (): EgressError => new EgressError("cancelled", "the request was cancelled");

function egressErrorOf(thrown: unknown, isAborted: boolean): EgressError {
  if (thrown instanceof EgressError) return thrown;
  if (isAborted) return cancelled();
  const reason = messageOf(thrown);
  return new EgressError("protocol", `the request failed: ${reason}`, { cause: thrown });
}
