import { AppError } from "../lib/app-error.ts";
import type { Caller } from "../limits/caller.ts";
import { createSlots } from "../limits/slots.ts";
import { clientLeft } from "./answer.ts";

/** The kinds of long-lived answers. Each has its own slots, so that event streams never block messages. */
export type LastingKind = "events" | "run" | "bundle";

/** The slot of one long-lived answer. */
export interface LastingAnswer {
  /** Whose it is. */
  accountId: string;
  /** Charges the account for bytes that were read for the answer. */
  charge(bytes: number): void;
  /** Has `end` called once the credential is no longer valid. */
  endWith(end: () => void): void;
  /** Has `leave` called when the host stops, while there is still time to say so. */
  leaveWith(leave: () => void): void;
  /** Releases the slot. Calling it again does nothing. */
  close(): void;
}

export interface LastingAnswers {
  /** Throws `rate_limited` if the caller's account has too many open, 503 if the host has. */
  open(caller: Caller, kind: LastingKind): LastingAnswer;
  /** The number open now, of all accounts. */
  count(): number;
  /** Those that are not whole by the end of the stop's grace say why. */
  stop(): void;
}

export interface LastingAnswersOptions {
  /** The host's limit. */
  total: number;
  /** An account's limit. */
  limitOf(accountId: string): number;
  /** Whether the caller's credentials are still valid; takes a few microseconds. */
  stillValid(caller: Caller): boolean;
  /** Charges an account as for a read of so many bytes. */
  charge?(caller: Caller, bytes: number): void;
  /** Called before a batch of such checks. */
  beforeChecks?: () => void;
  checkMs?: number;
}

/** Closes the connection of a refused client: otherwise idle connections would use up the file descriptors. */
const REFUSED = { retryAfterSeconds: 5, headers: { Connection: "close" } };

/** Each credential is checked at least every third round, so that an answer ends within a second of its credential. */
const CHECK_MS = 250;
const CHECK_ROUNDS = 3;
/** Of the second that answers have to finish when the host stops: the rest is for saying that they do not. */
const FINISH_MS = 700;

/** Why an answer ends before it is whole. */
export const credentialEnded = () => new AppError("unauthorized", "the credential is no longer valid");
const hostStops = () =>
  new AppError("internal_error", "this server is stopping; what it has accepted goes on once it has started again", {
    status: 503,
    ...REFUSED,
  });

/** Calls `leave` with the reason once the client has left, its credential is no longer valid, or the host stops. */
export function onLeaving(place: LastingAnswer, { signal }: Request, leave: (reason: AppError) => void): void {
  place.endWith(() => leave(credentialEnded()));
  place.leaveWith(() => leave(hostStops()));
  signal.addEventListener("abort", () => leave(clientLeft()), { once: true });
  if (signal.aborted) leave(clientLeft());
}

interface Open {
  end: () => void;
  leave: () => void;
}

/** The answers of one credential, and the round in which it was last checked. */
interface Watched {
  caller: Caller;
  answers: Set<Open>;
  look: number;
}

/**
 * Long-lived answers: event streams, and messages that wait for their answer. They are bounded per account and in
 * total, and none outlives its credential (docs/contract/api.md, Limits).
 */
export function createLastingAnswers(options: LastingAnswersOptions): LastingAnswers {
  const { total, limitOf, stillValid, charge, beforeChecks, checkMs = CHECK_MS } = options;
  const places = createSlots({ total });
  /** By credential, so that thousands of streams of one key need one check. The least recently checked comes first. */
  const open = new Map<string, Watched>();
  let looks = 0;
  let timer: Timer | undefined;

  /** Checks a third of them, so that no turn checks all, and every one that is due. */
  function look(): void {
    looks++;
    let share = Math.ceil(open.size / CHECK_ROUNDS);
    beforeChecks?.();
    for (const [credential, watched] of open) {
      if (share-- <= 0 && looks - watched.look < CHECK_ROUNDS) break;
      watched.look = looks;
      open.delete(credential);
      open.set(credential, watched);
      if (!stillValid(watched.caller)) for (const { end } of [...watched.answers]) end();
    }
    if (open.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    open(caller, kind) {
      const owner = `${kind} ${caller.accountId}`;
      const max = limitOf(caller.accountId);
      switch (places.acquire(owner, 1, max)) {
        case "each":
          throw new AppError(
            "rate_limited",
            `more than ${max} answers are being streamed to this account; end one first`,
            REFUSED,
          );
        case "total":
          throw new AppError("internal_error", "this host is streaming as many answers as it can; try again later", {
            status: 503,
            ...REFUSED,
          });
        case "taken":
      }
      const credential = credentialOf(caller);
      const answer: Open = { end() {}, leave() {} };
      const watched = open.get(credential) ?? { caller, answers: new Set(), look: looks };
      const { answers } = watched;
      answers.add(answer);
      if (answers.size === 1) open.set(credential, watched);
      timer ??= setInterval(look, checkMs).unref();
      return {
        accountId: caller.accountId,
        charge: (bytes) => charge?.(caller, bytes),
        endWith(end) {
          answer.end = end;
        },
        leaveWith(leave) {
          answer.leave = leave;
        },
        close() {
          if (!answers.delete(answer)) return;
          if (answers.size === 0) open.delete(credential);
          places.release(owner);
        },
      };
    },
    count: () => places.inUse(),
    stop() {
      clearInterval(timer);
      setTimeout(() => {
        for (const { answers } of [...open.values()]) for (const { leave } of [...answers]) leave();
      }, FINISH_MS).unref();
    },
  };
}

const credentialOf = ({ credentials }: Caller): string =>
  credentials.map((one) => (one.kind === "key" ? one.keyId : one.tokenId)).join(" ");
