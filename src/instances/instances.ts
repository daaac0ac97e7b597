import { and, asc, desc, eq, isNull, lt, sql } from "drizzle-orm";
import { notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import type { Caller } from "../limits/caller.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { Meter } from "../meter/meter.ts";
import type { RunwayWarning } from "../meter/runway.ts";
import type { Payment } from "../payments/payment.ts";
import { prepared } from "../storage/prepared.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { type Instance, type InstanceStatus, instances } from "./schema.ts";

export interface InstanceParts {
  store: Store;
  clock: Clock;
  /**
   * Throws `payment_required`, or `forbidden` at the account's monthly limit, if it may not run one more. `payment` is
   * the request's. Never called in a transaction: the quote's invoice must outlive the refusal.
   */
  requireLaunch(accountId: string, payment: Payment | null): Promise<void>;
  meter: Pick<Meter, "start" | "stop" | "remove" | "listen">;
  quotas: Quotas;
  removals: Pick<Removals, "add">;
  /** Creates the folder for the instance's workspaces. */
  createFolder(instanceId: string): void;
}

/** Called in the transaction of the change, so that its consequences are committed with it. */
export interface InstanceListener {
  statusChanged(instance: Instance): void;
  removed(instance: Instance): void;
  /** The account's balance or monthly limit will stop the running instance soon. */
  runwayShort(instanceId: string, warning: RunwayWarning): void;
}

export interface Instances {
  /** The caller's instance. Throws `not_found` for any other, and for those that a limited key may not see. */
  get(caller: Caller, instanceId: string): Instance;
  find(instanceId: string): Instance | undefined;
  /** True also for one that is deleted but not removed yet. */
  isKnown(instanceId: string): boolean;
  /** Call it before `create` and `start`, outside of any transaction. Throws `payment_required`, `forbidden`. */
  requireLaunch(accountId: string, payment: Payment | null): Promise<void>;
  /** Throws `conflict` if the account may not have one more. */
  requireRoom(accountId: string): void;
  /** Throws `conflict` as `requireRoom`. */
  create(caller: Caller, name: string): Instance;
  change(instance: Instance, change: Partial<Pick<Instance, "name" | "modelLimits">>): Instance;
  /** Does nothing if it is stopped already. */
  stop(instance: Instance, reason?: string | null): Instance;
  /** Does nothing if it is running already. */
  start(instance: Instance): Instance;
  /** Settles its meter and hides it; its contents are removed later. */
  remove(instance: Instance): void;
  /** Newest first. */
  list(caller: Caller, filter: { status: InstanceStatus | null; before: string | null; limit: number }): Instance[];
  allRunning(): { instanceId: string; accountId: string }[];
  countRunning(): number;
  listen(listener: InstanceListener): void;
}

export function createInstances(parts: InstanceParts): Instances {
  const { store, clock, requireLaunch, meter, quotas, removals, createFolder } = parts;
  const { db } = store;
  const listeners: InstanceListener[] = [];
  const byId = prepared(db, () =>
    db
      .select()
      .from(instances)
      .where(and(eq(instances.instanceId, sql.placeholder("instanceId")), isNull(instances.removedAt))),
  );
  const running = prepared(db, () =>
    db.select({ count: sql<number>`count(*)` }).from(instances).where(eq(instances.status, "running")),
  );
  const stored = store.oncePerSnapshot((instanceId) => byId.get({ instanceId }));
  const find = (instanceId: string) => (isId("inst", instanceId) ? stored(instanceId) : undefined);

  function set(instance: Instance, change: Partial<Instance>): Instance {
    return store.transaction(() => {
      const isStop = change.status !== undefined && change.status !== "running";
      db.update(instances)
        .set({ ...change, ...(isStop ? { stops: sql`${instances.stops} + 1` } : {}) })
        .where(eq(instances.instanceId, instance.instanceId))
        .run();
      const changed = { ...instance, ...change };
      if (change.status === "running") meter.start(instance.instanceId, instance.accountId);
      else if (change.status !== undefined) meter.stop(instance.instanceId);
      if (change.status !== undefined) for (const listener of listeners) listener.statusChanged(changed);
      return changed;
    });
  }

  function stop(instance: Instance, reason: string | null = null): Instance {
    if (instance.status === "stopped") return instance;
    return set(instance, { status: "stopped", statusReason: reason, stoppedAt: clock.now() });
  }

  function runningOf(accountId: string): Instance[] {
    const isRunning = and(eq(instances.accountId, accountId), eq(instances.status, "running"));
    return db.select().from(instances).where(isRunning).orderBy(asc(instances.instanceId)).all();
  }

  meter.listen({
    exhausted(accountId, reason) {
      for (const instance of runningOf(accountId)) stop(instance, reason);
    },
    runwayShort(accountId, warning) {
      for (const { instanceId } of runningOf(accountId)) {
        for (const listener of listeners) listener.runwayShort(instanceId, warning);
      }
    },
  });

  return {
    find,
    isKnown: (instanceId) =>
      db.select({ id: instances.instanceId }).from(instances).where(eq(instances.instanceId, instanceId)).get() !==
      undefined,
    get(caller, instanceId) {
      const instance = find(instanceId);
      const hidden = caller.instanceId !== null && caller.instanceId !== instanceId;
      if (!instance || instance.accountId !== caller.accountId || hidden) throw notFound("instance");
      return instance;
    },
    requireLaunch,
    requireRoom: (accountId) => quotas.requireRoom(accountId, "instances"),
    create(caller, name) {
      return store.transaction(() => {
        const now = clock.now();
        const insert = db.insert(instances).values({
          instanceId: newId("inst"),
          accountId: caller.accountId,
          name,
          status: "running",
          createdAt: now,
          startedAt: now,
        });
        const instance = quotas.within(caller.accountId, "instances", () => insert.returning().get());
        meter.start(instance.instanceId, instance.accountId);
        createFolder(instance.instanceId);
        return instance;
      });
    },
    change: set,
    stop,
    start(instance) {
      if (instance.status === "running") return instance;
      return set(instance, { status: "running", statusReason: null, startedAt: clock.now() });
    },
    remove(instance) {
      store.transaction(() => {
        meter.remove(instance.instanceId);
        for (const listener of listeners) listener.removed(instance);
        const now = clock.now();
        db.update(instances)
          .set({ removedAt: now, status: "stopped", stoppedAt: now })
          .where(eq(instances.instanceId, instance.instanceId))
          .run();
        removals.add("instance", instance.instanceId);
      });
    },
    list(caller, { status, before, limit }) {
      return db
        .select()
        .from(instances)
        .where(
          and(
            eq(instances.accountId, caller.accountId),
            isNull(instances.removedAt),
            caller.instanceId === null ? undefined : eq(instances.instanceId, caller.instanceId),
            status === null ? undefined : eq(instances.status, status),
            before === null ? undefined : lt(instances.instanceId, before),
          ),
        )
        .orderBy(desc(instances.instanceId))
        .limit(limit)
        .all();
    },
    allRunning: () =>
      db
        .select({ instanceId: instances.instanceId, accountId: instances.accountId })
        .from(instances)
        .where(eq(instances.status, "running"))
        .all(),
    countRunning: () => running.get()?.count ?? 0,
    listen: (listener) => void listeners.push(listener),
  };
}
