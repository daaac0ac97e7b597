import { and, eq, sql } from "drizzle-orm";
import type { Instance } from "../instances/schema.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { Commit } from "./agents.ts";
import { type Agent, agents } from "./schema.ts";
import { freeSlug } from "./slug.ts";
import type { Workspaces } from "./workspaces.ts";

/** How an agent that arrives is called, and what its owner says about its tools and its heartbeat. */
export type Arriving = Pick<Agent, "name" | "displayName" | "model" | "tools" | "heartbeat">;

/**
 * Agents that arrive with more than one commit should hold, such as a history: their rows are written in slices, and nobody
 * sees anything of them before all of it is there.
 */
export interface Arrivals {
  /** Adds an agent that nobody sees. Call it in a transaction. */
  begin(instance: Pick<Instance, "instanceId">, input: Arriving): Agent;
  /**
   * Shows it, with the folder as its workspace, whose files are on disk and in the index. Without a slug it gets one from
   * its name. Throws `conflict` for a slug in use or beyond a quota.
   */
  complete<T>(
    find: () => Instance,
    agent: Agent,
    slug: string | null,
    folder: string,
    commit: Commit<Instance, Agent, T>,
  ): Promise<T>;
  /** Removes what has arrived of one that is not complete. Call it in a transaction. */
  discard(agentId: string): void;
  /** After a start, before anything else: discards what a process has left that was killed. */
  recover(): void;
}

export interface ArrivalParts {
  store: Store;
  clock: Clock;
  workspaces: Pick<Workspaces, "inTurn" | "change" | "tidy">;
  quotas: Pick<Quotas, "within">;
  removals: Pick<Removals, "add">;
}

/** `removedAt` of one that is on its way: it is hidden like those that were deleted. */
const ON_ITS_WAY = 0;

export function createArrivals({ store, clock, workspaces, quotas, removals }: ArrivalParts): Arrivals {
  const { db } = store;
  const arriving = () =>
    db
      .select({ agentId: agents.agentId, instanceId: agents.instanceId })
      .from(agents)
      // As in the condition of its index.
      .where(sql`${agents.removedAt} = 0`)
      .all();
  const isTaken = (instanceId: string, slug: string) =>
    db
      .select({ agentId: agents.agentId })
      .from(agents)
      .where(sql`${agents.instanceId} = ${instanceId} AND ${agents.slug} = ${slug}`)
      .get() !== undefined;

  function refuseTaken(instanceId: string, slug: string): void {
    if (!isTaken(instanceId, slug)) return;
    throw new AppError("conflict", `slug: the instance has an agent "${slug}" already; import it with another name`);
  }

  /** The agent, while nobody sees it. */
  const onItsWay = (agentId: string) => and(eq(agents.agentId, agentId), eq(agents.removedAt, ON_ITS_WAY));

  function discard(agentId: string): void {
    const set = db.update(agents).set({ removedAt: clock.now() }).where(onItsWay(agentId));
    if (set.returning({ agentId: agents.agentId }).get() !== undefined) removals.add("agent", agentId);
  }

  return {
    begin({ instanceId }, input) {
      const now = clock.now();
      const agentId = newId("agt");
      return db
        .insert(agents)
        .values({
          agentId,
          instanceId,
          ...input,
          // No slug is an id: it takes nobody's.
          slug: agentId,
          createdAt: now,
          updatedAt: now,
          indexedAt: now,
          removedAt: ON_ITS_WAY,
        })
        .returning()
        .get();
    },
    complete: (find, { agentId, name }, given, folder, commit) =>
      workspaces.inTurn(find(), 0, async (stage) => {
        const { instanceId } = find();
        const slug = given ?? freeSlug(name, (text) => isTaken(instanceId, text));
        refuseTaken(instanceId, slug);
        const staged = await stage({ kind: "arrive", slug }, { folder });
        return commit(({ accountId }) => {
          refuseTaken(instanceId, slug);
          const shown = { slug, removedAt: null, createdAt: clock.now(), updatedAt: clock.now() };
          const show = () => db.update(agents).set(shown).where(onItsWay(agentId)).returning().get();
          const agent = quotas.within(accountId, "agents", () => quotas.within(accountId, "workspaceBytes", show));
          if (agent === undefined) throw new AppError("conflict", "the import was removed meanwhile; try again");
          workspaces.change(agent, staged);
          return agent;
        });
      }),
    discard,
    recover() {
      const left = arriving();
      // Its folder may be staged: nothing of it was committed.
      for (const instanceId of new Set(left.map((one) => one.instanceId))) workspaces.tidy(instanceId);
      store.transaction(() => {
        for (const { agentId } of left) discard(agentId);
      });
    },
  };
}
