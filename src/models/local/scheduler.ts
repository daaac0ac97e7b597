/**
 * Who runs next. Instances take turns in a ring, and within an instance its requests do; a turn is one token, one
 * chunk of a prompt to run, or one piece of its text to tokenise. As many requests run at once as there are slots, the rest wait. One instance never holds all slots,
 * so another's first request starts at once however busy the first one is.
 */
import type { Generation, Turn } from "./generation.ts";

export interface Job {
  instanceId: string;
  /** Called when a slot is free: takes it. */
  start(): Generation;
  onTurn(turn: Turn, generation: Generation): void;
  onError(error: unknown): void;
  /** Called once, however the job ended, if it was started: gives the slot back. */
  onEnd(): void;
}

export interface Scheduler {
  submit(id: number, job: Job): void;
  /** Forgets a job; one that runs stops before its next turn. */
  cancel(id: number): void;
}

interface Running {
  id: number;
  job: Job;
  generation: Generation;
  cancelled: boolean;
}

interface Instance {
  waiting: { id: number; job: Job }[];
  running: Running[];
}

export function createScheduler(slots: number): Scheduler {
  const instances = new Map<string, Instance>(); // in the order of their next turn
  const slotsOfOne = Math.max(1, slots - 1);
  let looping = false;

  function admit(): void {
    for (;;) {
      const all = [...instances.values()];
      if (all.reduce((sum, { running }) => sum + running.length, 0) >= slots) return;
      const candidates = all.filter(({ waiting, running }) => waiting.length > 0 && running.length < slotsOfOne);
      const next = candidates.reduce<Instance | undefined>(
        (a, b) => (a !== undefined && a.running.length <= b.running.length ? a : b),
        undefined,
      );
      const first = next?.waiting.shift();
      if (next === undefined || first === undefined) return;
      try {
        next.running.push({ ...first, generation: first.job.start(), cancelled: false });
      } catch (error) {
        first.job.onError(error);
      }
    }
  }

  /** The request whose turn it is; it and its instance go to the end of their lines. */
  function nextInLine(): Running | undefined {
    for (const [instanceId, instance] of [...instances]) {
      instances.delete(instanceId);
      if (instance.running.length + instance.waiting.length === 0) continue;
      instances.set(instanceId, instance);
      const running = instance.running.shift();
      if (running === undefined) continue;
      instance.running.push(running);
      return running;
    }
    return undefined;
  }

  function end(running: Running): void {
    const instance = instances.get(running.job.instanceId);
    if (instance?.running.includes(running) !== true) return;
    instance.running = instance.running.filter((other) => other !== running);
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
      const instance = instances.get(job.instanceId) ?? { waiting: [], running: [] };
      instances.set(job.instanceId, instance);
      instance.waiting.push({ id, job });
      if (!looping) void loop();
    },
    cancel(id) {
      for (const instance of instances.values()) {
        instance.waiting = instance.waiting.filter((other) => other.id !== id);
        for (const running of instance.running) if (running.id === id) running.cancelled = true;
      }
    },
  };
}

/** A step is one long call into C: between steps the event loop must run once, or no cancel would ever arrive. */
const breathe = () => new Promise<void>((resolve) => setImmediate(resolve));
