/**
 * Round-robin scheduling: accounts take turns, and within an account its instances do. A turn is one token, one chunk
 * of a prompt to run, or one piece of its text to tokenise. As many requests run at once as there are slots, the rest
 * wait. One account never holds all slots, so another's first request starts immediately, however busy the first one
 * is. A request that waits for something else than the model steps aside meanwhile.
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
  aside: Aside;
}

/**
 * Does work that needs no turn, and gives others theirs meanwhile: it returns in a later turn, or never if the job was
 * cancelled. Only for the generation whose turn it is. What several generations wait for must not wait for a turn itself.
 */
export type Aside = <T>(work: () => Promise<T>) => Promise<T>;

interface Running {
  id: number;
  job: Job;
  generation: Generation;
  cancelled: boolean;
  /** The turn that it has stepped aside from. */
  begun?: Promise<Turn> | undefined;
  isAside: boolean;
  /** Goes on with the turn, once it is no longer aside. */
  resume?: () => void;
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
  let wake = () => {};
  /** Whose turn it is, and how it gives the turn back before its end. */
  let atWork: { running: Running; leave(): void } | undefined;

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
        next.running.push({ ...first, generation: first.job.start(), cancelled: false, isAside: false });
      } catch (error) {
        first.job.onError(error);
      }
    }
  }

  /** The request whose turn it is; it, its instance and its account move to the end of their queues. */
  function nextInLine(): Running | undefined {
    for (const [accountId, account] of [...accounts]) {
      if (account.running.length + account.waiting.length === 0) {
        accounts.delete(accountId);
        continue;
      }
      const ready = account.running.filter(({ isAside, cancelled }) => !isAside || cancelled);
      const next = ready.find(({ job }) => job.instanceId !== account.served) ?? ready[0];
      if (next === undefined) continue;
      accounts.delete(accountId);
      accounts.set(accountId, account);
      account.running = [...account.running.filter((other) => other !== next), next];
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
      const { promise: left, resolve } = Promise.withResolvers<null>();
      atWork = { running, leave: () => resolve(null) };
      if (running.begun === undefined) running.begun = running.generation.takeTurn();
      else running.resume?.();
      const turn = await Promise.race([running.begun, left]);
      if (turn === null) return;
      running.begun = undefined;
      if (turn.reason !== undefined) end(running);
      if (!running.cancelled) running.job.onTurn(turn, running.generation);
    } catch (error) {
      end(running);
      running.job.onError(error);
    }
  }

  /** All are aside: one comes back, is cancelled, or a new one arrives. */
  const somethingNew = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });

  async function loop(): Promise<void> {
    looping = true;
    for (;;) {
      await breathe();
      admit();
      const running = nextInLine();
      if (running !== undefined) await takeTurn(running);
      else if (accounts.size > 0) await somethingNew();
      else break;
    }
    looping = false;
  }

  return {
    submit(id, job) {
      const account = accounts.get(job.accountId) ?? { waiting: [], running: [], served: null };
      accounts.set(job.accountId, account);
      account.waiting.push({ id, job });
      wake();
      if (!looping) void loop();
    },
    cancel(id) {
      for (const account of accounts.values()) {
        account.waiting = account.waiting.filter((other) => other.id !== id);
        for (const running of account.running) if (running.id === id) running.cancelled = true;
      }
      wake();
    },
    async aside(work) {
      if (atWork === undefined) throw new Error("nobody has a turn to step aside from");
      const { running, leave } = atWork;
      running.isAside = true;
      leave();
      try {
        return await work();
      } finally {
        await new Promise<void>((resolve) => {
          running.resume = resolve;
          running.isAside = false;
          wake();
        });
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
