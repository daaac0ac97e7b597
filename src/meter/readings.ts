import type { Micros } from "../lib/money.ts";
import type { Store } from "../storage/store.ts";

/** The latest reading of a running instance's meter. Immutable. */
export interface Reading {
  readonly instanceId: string;
  readonly accountId: string;
  /** The time of the reading: by the monotonic clock, and by the wall clock for the calendar. */
  readonly sinceNs: bigint;
  readonly sinceMs: number;
  readonly accrued: Micros;
  readonly remainder: bigint;
  /** The part of `accrued` that is not in the journal yet, and its hour. */
  readonly unposted: Micros;
  readonly hour: number;
  /** Whether the journal has an entry for that hour. */
  readonly isPosted: boolean;
}

export interface Readings {
  of(accountId: string): Reading[];
  get(instanceId: string): Reading | undefined;
  countOf(accountId: string): number;
  accountIds(): string[];
  put(reading: Reading): void;
  remove(instanceId: string): void;
}

/**
 * The readings of all running instances, kept in memory because every request needs them. Changes are undone when their
 * transaction rolls back, so that memory and database never differ.
 */
export function createReadings(store: Pick<Store, "afterCommit">): Readings {
  const byInstance = new Map<string, Reading>();
  const byAccount = new Map<string, Map<string, Reading>>();

  function set(instanceId: string, accountId: string, reading: Reading | undefined): void {
    const own = byAccount.get(accountId) ?? new Map<string, Reading>();
    if (reading) {
      byInstance.set(instanceId, reading);
      own.set(instanceId, reading);
      byAccount.set(accountId, own);
    } else {
      byInstance.delete(instanceId);
      own.delete(instanceId);
      if (own.size === 0) byAccount.delete(accountId);
    }
  }

  function change(instanceId: string, accountId: string, reading: Reading | undefined): void {
    const before = byInstance.get(instanceId);
    set(instanceId, accountId, reading);
    store.afterCommit(
      () => {},
      () => set(instanceId, accountId, before),
    );
  }

  return {
    of: (accountId) => [...(byAccount.get(accountId)?.values() ?? [])],
    get: (instanceId) => byInstance.get(instanceId),
    countOf: (accountId) => byAccount.get(accountId)?.size ?? 0,
    accountIds: () => [...byAccount.keys()],
    put: (reading) => change(reading.instanceId, reading.accountId, reading),
    remove(instanceId) {
      const reading = byInstance.get(instanceId);
      if (reading) change(instanceId, reading.accountId, undefined);
    },
  };
}
