import type { Socket } from "node:net";
import { createFairPlaces } from "../limits/fair-places.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import { type AddressKind, kindFromHere } from "./address.ts";
import { readBody } from "./body.ts";
import { connectTo } from "./connect.ts";
import { type AnswerHead, readHead, valuesOf } from "./head.ts";
import type { EgressPolicy } from "./policy.ts";
import { createSocketReader } from "./reader.ts";
import { EgressError, type EgressFault, isRefusal } from "./refusal.ts";
import { type Message, type PreparedMessage, redirected, writeMessage } from "./request.ts";
import { addressesOf, type Resolve, resolveBySystem } from "./resolve.ts";
import { shownHost, type Target, targetOf } from "./target.ts";

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

interface Redirect {
  status: number;
  to: Target;
}

/** What was refused: `host` is the one that was asked for, which a stranger may have written. */
export interface Refusal {
  accountId: string;
  instanceId: string;
  host: string;
  fault: EgressFault;
}

/** The one way out for everything that an agent causes (docs/contract/security.md, Requests of agents). */
export interface Egress {
  /** Throws `EgressError` for everything that is no complete answer of a server. */
  send(request: EgressRequest): Promise<EgressAnswer>;
  readonly policy: EgressPolicy;
  /** Requests so far by outcome: `answered`, or what went wrong. */
  outcomes(): ReadonlyMap<EgressFault | "answered", number>;
  connections(): number;
}

export interface EgressParts {
  policy: EgressPolicy;
  onRefused?(refusal: Refusal): void;
  /** Replaced in tests: another resolver, other judgements of addresses, another certificate authority (PEM). */
  resolve?: Resolve;
  kindOf?(address: string): AddressKind;
  ca?: string;
  deadlineMs?: number;
}

const { deadlineMs: DEADLINE_MS, answerBytes: MAX_ANSWER, redirects: MAX_REDIRECTS } = OUTGOING.agents;
/** Addresses of one name that are tried, one after the other. */
const MAX_ADDRESSES = 4;
const GET: Message = { method: "GET", headers: {}, body: null };
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export function createEgress(parts: EgressParts): Egress {
  const { policy, resolve = resolveBySystem, kindOf = kindFromHere, deadlineMs = DEADLINE_MS } = parts;
  const connections = createFairPlaces(OUTGOING.agents.places);
  const outcomes = new Map<EgressFault | "answered", number>();
  const count = (outcome: EgressFault | "answered") => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);

  /** A connection to one of the target's addresses, each of which was judged. */
  async function reach(target: Target, signal: AbortSignal): Promise<Socket> {
    const addresses = await addressesOf(target, resolve, signal);
    policy.requireReachable(target, addresses, kindOf);
    let failure: unknown;
    for (const address of addresses.slice(0, MAX_ADDRESSES)) {
      try {
        return await connectTo(address, target, signal, parts.ca);
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
    }
    throw failure;
  }

  /** One request and its answer; or where it is redirected to. */
  async function exchange(target: Target, message: Message, signal: AbortSignal): Promise<EgressAnswer | Redirect> {
    const bytes = writeMessage(target, message);
    const socket = await reach(target, signal);
    try {
      const reader = createSocketReader(socket, signal);
      socket.write(bytes);
      const head = await readHead(reader);
      const [location] = valuesOf(head, "location");
      if (REDIRECTS.has(head.status) && location !== undefined) {
        return { status: head.status, to: targetOf(Buffer.from(location, "latin1").toString(), target.url) };
      }
      const pieces: Buffer[] = [];
      for await (const piece of readBody(reader, message.method, head, MAX_ANSWER, signal)) pieces.push(piece);
      return { ...head, url: target.url.href, body: Buffer.concat(pieces) };
    } finally {
      socket.destroy();
    }
  }

  async function follow(request: EgressRequest, signal: AbortSignal, judge: (target: Target) => void) {
    let target = targetOf(request.url);
    judge(target);
    const prepared = await request.prepare?.(target);
    if (prepared !== undefined) target.url.search = prepared.search;
    const { headers, ...message } = prepared ?? request.message ?? GET;
    let next: Message = { ...message, headers: { "User-Agent": "Roost", ...headers } };
    for (let redirects = 0; ; redirects++) {
      const found = await exchange(target, next, signal);
      if (!("to" in found)) return found;
      if (redirects === MAX_REDIRECTS) {
        throw new EgressError("redirect", `the server redirects more than ${MAX_REDIRECTS} times`);
      }
      next = redirected(next, found.status, target, found.to);
      target = found.to;
      judge(target);
    }
  }

  return {
    policy,
    outcomes: () => outcomes,
    connections: connections.inUse,
    async send(request) {
      const { accountId, instanceId } = request;
      const end = new AbortController();
      const { signal } = end;
      const cancel = () => end.abort(new EgressError("cancelled", "the request was cancelled"));
      const timer = setTimeout(
        () =>
          end.abort(new EgressError("deadline", `there was no complete answer within ${deadlineMs / 1000} seconds`)),
        deadlineMs,
      );
      request.signal.addEventListener("abort", cancel, { once: true });
      if (request.signal.aborted) cancel();
      let asked = "";
      const judge = (target: Target) => {
        asked = shownHost(target);
        request.requireAllowed?.(target);
        policy.requirePermitted(target);
      };
      let release: (() => void) | null = null;
      try {
        release = await connections.take(accountId, signal);
        if (release === null) throw new EgressError("busy", "too many requests of this account wait: try again later");
        const answer = await follow(request, signal, judge);
        count("answered");
        return answer;
      } catch (thrown) {
        const error = egressErrorOf(signal.aborted ? signal.reason : thrown);
        count(error.fault);
        if (isRefusal(error.fault)) parts.onRefused?.({ accountId, instanceId, host: asked, fault: error.fault });
        throw error;
      } finally {
        clearTimeout(timer);
        request.signal.removeEventListener("abort", cancel);
        release?.();
      }
    },
  };
}

const egressErrorOf = (thrown: unknown): EgressError =>
  thrown instanceof EgressError
    ? thrown
    : new EgressError("protocol", `the request failed: ${thrown instanceof Error ? thrown.message : thrown}`, {
        cause: thrown,
      });
