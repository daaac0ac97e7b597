import type { Caller } from "../accounts/caller.ts";
import { AppError } from "../lib/app-error.ts";
import { createSlots } from "../limits/slots.ts";

/** What an answer that lasts is for. Each kind has places of its own, so that event streams never keep a message out. */
export type LastingKind = "events" | "run";

/** The place of one answer that lasts. */
export interface LastingAnswer {
  /** What ends the answer when its credential does. */
  endWith(end: () => void): void;
  /** Gives the place back. Again, it does nothing. */
  close(): void;
}

export interface LastingAnswers {
  /** Throws `rate_limited` where the caller's account has too many open, 503 where the host has. */
  open(caller: Caller, kind: LastingKind): LastingAnswer;
  /** Open now, of all accounts. */
  count(): number;
  stop(): void;
}

export interface LastingAnswersOptions {
  /** Of the host. */
  total: number;
  /** Of one account. */
  limitOf(accountId: string): number;
  /** Whether the credential that made this caller is good now: a few microseconds. */
  stillValid(caller: Caller): boolean;
  /** Told before many of them are looked at together. */
  beforeLooks?: () => void;
  lookMs?: number;
}

/** Who is refused keeps no connection: where files are few, those would be next. */
const REFUSED = { retryAfterSeconds: 5, headers: { Connection: "close" } };

/** A credential is looked at every third time at the latest, so that an answer ends within a second of it. */
const LOOK_MS = 250;
const LOOKS = 3;

interface Open {
  end: () => void;
}

/** The answers of one credential, and at which look it was looked at last. */
interface Watched {
  caller: Caller;
  answers: Set<Open>;
  look: number;
}

/**
 * Answers that go on after their request was judged: streams of events, and messages that wait for their answer. They
 * have a bound for each account and one for all, and none outlives its credential (api.md section 1, Limits).
 */
export function createLastingAnswers(options: LastingAnswersOptions): LastingAnswers {
  const { total, limitOf, stillValid, beforeLooks, lookMs = LOOK_MS } = options;
  const places = createSlots({ total });
  /** By credential: thousands of streams of one key are one question. The longest not looked at comes first. */
  const open = new Map<string, Watched>();
  let looks = 0;
  let timer: Timer | undefined;

  /** A third of them, so that no turn looks at all, and every one whose time it is, however many have ended meanwhile. */
  function look(): void {
    looks++;
    let share = Math.ceil(open.size / LOOKS);
    beforeLooks?.();
    for (const [credential, watched] of open) {
      if (share-- <= 0 && looks - watched.look < LOOKS) break;
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
      const most = limitOf(caller.accountId);
      switch (places.acquire(owner, 1, most)) {
        case "each":
          throw new AppError(
            "rate_limited",
            `more than ${most} answers are streamed to this account at once; end one`,
            REFUSED,
          );
        case "total":
          throw new AppError("internal_error", "this host streams as many answers as it can; try again later", {
            status: 503,
            ...REFUSED,
          });
        case "taken":
      }
      const credential = credentialOf(caller);
      const answer: Open = { end() {} };
      const watched = open.get(credential) ?? { caller, answers: new Set(), look: looks };
      const { answers } = watched;
      answers.add(answer);
      if (answers.size === 1) open.set(credential, watched);
      timer ??= setInterval(look, lookMs).unref();
      return {
        endWith(end) {
          answer.end = end;
        },
        close() {
          if (!answers.delete(answer)) return;
          if (answers.size === 0) open.delete(credential);
          places.release(owner);
        },
      };
    },
    count: () => places.inUse(),
    stop: () => clearInterval(timer),
  };
}

const credentialOf = ({ credentials }: Caller): string =>
  credentials.map((one) => (one.kind === "key" ? one.keyId : one.tokenId)).join(" ");
