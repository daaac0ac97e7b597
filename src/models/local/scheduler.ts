/**
 * Round-robin scheduling: accounts take turns, and within an account its instances do. A turn is one token, one chunk
 * of a prompt to run, or one piece of its text to tokenise. As many requests run at once as there are slots, the rest
 * wait. One account never holds all slots, so another's first request starts immediately, however busy the first one
 * is.
 */
import type { Generation, Turn } from "./generation.ts";

export interface Job {
  accountId: string;
  instanceId: string;
  /** Called when a slot is free; takes it. */
  start(): Generation;
  onTurn(turn: Turn, generation: Generation): void;
  onError(error: unknown): void;
  /** Called once if the job was started, however it ended; releases the slot. */
  onEnd(): void;
}

export interface Scheduler {
  submit(id: number, job: Job): void;
  /** Forgets a job; a running one stops before its next turn. */
  cancel(id: number): void;
}

interface Running {
  id: number;
  job: Job;
  generation: Generation;
  cancelled: boolean;
}

type Waiting = Pick<Running, "id" | "job">;

interface Account {
  waiting: Waiting[];
  running: Running[];
  /** The instance that had the last turn. */
  served: string | null;
}

export function createScheduler(slots: number): Scheduler {
  const accounts = new Map<string, Account>(); // in the order of their next turns
  const slotsOfOne = Math.max(1, slots - 1);
  let looping = false;

  function admit(): void {
    for (;;) {
      const all = [...accounts.values()];
      if (all.reduce((sum, { running }) => sum + running.length, 0) >= slots) return;
      const candidates = all.filter(({ waiting, running }) => waiting.length > 0 && running.length < slotsOfOne);
      const next = candidates.reduce<Account | undefined>(
        (a, b) => (a !== undefined && a.running.length <= b.running.length ? a : b),
        undefined,
      );
      const first = next && firstToStart(next);
      if (next === undefined || first === undefined) return;
      next.waiting = next.waiting.filter((other) => other !== first);
      try {
        next.running.push({ ...first, generation: first.job.start(), cancelled: false });
      } catch (error) {
        first.job.onError(error);
      }
    }
  }

  /** The request whose turn it is; it, its instance and its account move to the end of their queues. */
  function nextInLine(): Running | undefined {
    for (const [accountId, account] of [...accounts]) {
      accounts.delete(accountId);
      if (account.running.length + account.waiting.length === 0) continue;
      accounts.set(accountId, account);
      const { running, served } = account;
      const next = running.find(({ job }) => job.instanceId !== served) ?? running[0];
      if (next === undefined) continue;
      account.running = [...running.filter((other) => other !== next), next];
      account.served = next.job.instanceId;
      return next;
    }
    return undefined;
  }

  function end(running: Running): void {
    const account = accounts.get(running.job.accountId);
    if (account?.running.includes(running) !== true) return;
    account.running = account.running.filter((other) => other !== running);
    running.job.onEnd();
  }

  async function takeTurn(running: Running): Promise<void> {
    try {
      if (running.cancelled) return end(running);
      const turn = await running.generation.takeTurn();
      if (turn.reason !== undefined) end(running);
      if (!running.cancelled) running.job.onTurn(turn, running.generation);
    } catch (error) {
      end(running);
      running.job.onError(error);
    }
  }

  async function loop(): Promise<void> {
    looping = true;
    for (;;) {
      await breathe();
      admit();
      const running = nextInLine();
      if (running === undefined) break;
      await takeTurn(running);
    }
    looping = false;
  }

  return {
    submit(id, job) {
      const account = accounts.get(job.accountId) ?? { waiting: [], running: [], served: null };
      accounts.set(job.accountId, account);
      account.waiting.push({ id, job });
      if (!looping) void loop();
    },
    cancel(id) {
      for (const account of accounts.values()) {
        account.waiting = account.waiting.filter((other) => other.id !== id);
        for (const running of account.running) if (running.id === id) running.cancelled = true;
      }
    },
  };
}

/** The account's next request to get a slot: the first in the queue of the instance with the fewest running. */
function firstToStart({ waiting, running }: Account): Waiting | undefined {
  const atWork = ({ job }: Waiting) => running.filter((other) => other.job.instanceId === job.instanceId).length;
  return waiting.reduce<Waiting | undefined>((a, b) => (a !== undefined && atWork(a) <= atWork(b) ? a : b), undefined);
}

/** A step is one long call into C: between steps the event loop must run once, or no cancel would ever arrive. */
const breathe = () => new Promise<void>((resolve) => setImmediate(resolve));
