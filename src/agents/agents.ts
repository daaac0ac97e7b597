import { and, asc, eq, gt, isNull, sql } from "drizzle-orm";
import type { Caller } from "../accounts/caller.ts";
import type { Instances } from "../instances/instances.ts";
import type { Instance } from "../instances/table.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import { lazily } from "../lib/lazily.ts";
import type { Quotas } from "../limits/usage.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { Condition } from "./condition.ts";
import type { ShownTexts } from "./showing.ts";
import { freeSlug } from "./slug.ts";
import { type Agent, agents } from "./table.ts";
import type { FileChange } from "./workspace.ts";
import type { IndexedFile } from "./workspace-files.ts";
import type { Workspaces } from "./workspaces.ts";

export interface AgentParts {
  store: Store;
  clock: Clock;
  instances: Instances;
  workspaces: Workspaces;
  quotas: Quotas;
  removals: Pick<Removals, "add">;
  /** The persona files of a new agent, name → text. */
  defaultFiles: ReadonlyMap<string, string>;
  /** The models that an agent may name. */
  modelChoice: { allows(model: string): boolean; expected: string };
}

export interface NewAgent {
  name: string;
  slug: string | null;
  displayName: string | null;
  useDefaults: boolean;
  files: FileChange[];
  model: string | null;
}

export type AgentChange = Partial<Pick<Agent, "name" | "slug" | "displayName" | "model">> & {
  files?: FileChange[];
  useDefaults?: true;
};

/** An agent and its workspace's texts, as they are once the transaction has committed. */
export interface AgentWithFiles {
  agent: Agent;
  texts: ShownTexts;
}

/** Told in the transaction that makes the change. */
export interface AgentListener {
  updated(agent: Agent): void;
  removed(agent: Agent): void;
}

export interface Agents {
  /** The caller's agent with its instance. Throws `not_found`. */
  get(caller: Caller, instanceId: string, agentId: string): { instance: Instance; agent: Agent };
  find(agentId: string): Agent | undefined;
  /**
   * Throws `conflict` for a slug that the instance has and beyond a quota, `invalid_request` for a file or a model. The
   * files follow the commit.
   */
  create(instance: Instance, input: NewAgent): AgentWithFiles;
  /** All or nothing; the files follow the commit. Throws as `create` does. */
  update(agent: Agent, change: AgentChange): AgentWithFiles;
  /** Nobody sees it from here on; what it holds is cleared away later. */
  remove(agent: Agent): void;
  /** Writes one file of the workspace, whole or not at all. Throws `invalid_request`, `conflict`, `precondition_failed`. */
  writeFile(
    agent: Agent,
    name: string,
    bytes: Uint8Array,
    condition: Condition,
  ): { created: boolean; file: IndexedFile; etag: string };
  /** Throws `not_found`, `precondition_failed`. */
  deleteFile(agent: Agent, name: string, condition: Condition): void;
  /** Oldest first. */
  list(instanceId: string, after: string | null, limit: number): Agent[];
  idsOf(instanceId: string): string[];
  listen(listener: AgentListener): void;
}

export function createAgents(parts: AgentParts): Agents {
  const { store, clock, instances, workspaces, quotas, removals, defaultFiles, modelChoice } = parts;
  const { db } = store;
  const listeners: AgentListener[] = [];
  const byId = lazily(() =>
    db
      .select()
      .from(agents)
      .where(and(eq(agents.agentId, sql.placeholder("agentId")), isNull(agents.removedAt)))
      .prepare(),
  );
  const find = (agentId: string) => (isId("agt", agentId) ? byId().get({ agentId }) : undefined);
  const bySlug = lazily(() =>
    db
      .select({ agentId: agents.agentId })
      .from(agents)
      .where(and(eq(agents.instanceId, sql.placeholder("instanceId")), eq(agents.slug, sql.placeholder("slug"))))
      .prepare(),
  );
  const isTaken = (instanceId: string, slug: string) => bySlug().get({ instanceId, slug }) !== undefined;
  const slugConflict = (slug: string) => new AppError("conflict", `slug: the instance has an agent "${slug}" already`);

  /** In the account's quota of bytes, where a change of the instance's workspaces needs more. */
  function withinBytes<T>(instanceId: string, work: () => T): T {
    const accountId = instances.find(instanceId)?.accountId;
    return accountId === undefined ? work() : quotas.within(accountId, "workspaceBytes", work);
  }

  /** Notes that the workspace was changed, in the transaction that does it. */
  function touch(agent: Agent): void {
    const updatedAt = Math.max(clock.now(), agent.updatedAt);
    db.update(agents).set({ updatedAt }).where(eq(agents.agentId, agent.agentId)).run();
    for (const listener of listeners) listener.updated({ ...agent, updatedAt });
  }

  function requireAllowed(model: string | null | undefined): void {
    if (model == null || modelChoice.allows(model)) return;
    throw new AppError("invalid_request", `model: expected ${modelChoice.expected}, or null for the host's default`);
  }

  /** The default files that are neither there nor given. */
  function missingDefaults(isThere: (name: string) => boolean, given: FileChange[]): FileChange[] {
    const known = new Set(given.map(({ name }) => name));
    return [...defaultFiles].flatMap(([name, content]) =>
      known.has(name) || isThere(name) ? [] : [{ name, content }],
    );
  }

  return {
    find,
    get(caller, instanceId, agentId) {
      const instance = instances.get(caller, instanceId);
      const agent = find(agentId);
      if (agent?.instanceId !== instance.instanceId) throw notFound("agent");
      return { instance, agent };
    },
    create(instance, input) {
      requireAllowed(input.model);
      return store.transaction(() => {
        const { instanceId, accountId } = instance;
        const slug = input.slug ?? freeSlug(input.name, (text) => isTaken(instanceId, text));
        const defaults = input.useDefaults ? missingDefaults(() => false, input.files) : [];
        // The files are judged first: a bad one is a 400, which comes before a 409 (api.md section 1).
        const changes = workspaces.check(null, [...defaults, ...input.files]);
        if (isTaken(instanceId, slug)) throw slugConflict(slug);
        const now = clock.now();
        const insert = db.insert(agents).values({
          agentId: newId("agt"),
          instanceId,
          name: input.name,
          slug,
          displayName: input.displayName ?? input.name,
          model: input.model,
          createdAt: now,
          updatedAt: now,
          indexedAt: now,
        });
        const agent = quotas.within(accountId, "agents", () => insert.returning().get());
        withinBytes(instanceId, () => workspaces.change(agent, { kind: "create", slug }, changes));
        return { agent, texts: workspaces.texts(agent, changes) };
      });
    },
    update(agent, { files = [], useDefaults, ...fields }) {
      requireAllowed(fields.model);
      return store.transaction(() => {
        const { agentId, instanceId, slug: from } = agent;
        const { slug = from } = fields;
        const defaults = useDefaults ? missingDefaults((name) => workspaces.has(agent, name), files) : [];
        const changes = workspaces.check(agent, [...defaults, ...files]);
        if (slug !== from && isTaken(instanceId, slug)) throw slugConflict(slug);
        const updatedAt = Math.max(clock.now(), agent.updatedAt);
        db.update(agents)
          .set({ ...fields, updatedAt })
          .where(eq(agents.agentId, agentId))
          .run();
        if (slug !== from || changes.length > 0) {
          const target = slug === from ? ({ kind: "edit", slug } as const) : ({ kind: "rename", slug, from } as const);
          withinBytes(instanceId, () => workspaces.change(agent, target, changes));
        }
        const updated = { ...agent, ...fields, updatedAt };
        for (const listener of listeners) listener.updated(updated);
        // The folder is where it was until the commit.
        return { agent: updated, texts: workspaces.texts(agent, changes) };
      });
    },
    remove(agent) {
      store.transaction(() => {
        const { agentId, slug } = agent;
        for (const listener of listeners) listener.removed(agent);
        workspaces.change(agent, { kind: "remove", slug }, []);
        // Its id is no slug, so the slug is free, and no path is ever made of what stands in its place.
        db.update(agents).set({ removedAt: clock.now(), slug: agentId }).where(eq(agents.agentId, agentId)).run();
        removals.add("agent", agentId);
      });
    },
    writeFile(agent, name, bytes, condition) {
      return store.transaction(() => {
        const written = withinBytes(agent.instanceId, () => workspaces.write(agent, name, bytes, condition));
        touch(agent);
        return written;
      });
    },
    deleteFile(agent, name, condition) {
      store.transaction(() => {
        workspaces.delete(agent, name, condition);
        touch(agent);
      });
    },
    list: (instanceId, after, limit) =>
      db
        .select()
        .from(agents)
        .where(
          and(
            eq(agents.instanceId, instanceId),
            isNull(agents.removedAt),
            after === null ? undefined : gt(agents.agentId, after),
          ),
        )
        .orderBy(asc(agents.agentId))
        .limit(limit)
        .all(),
    idsOf: (instanceId) =>
      db
        .select({ agentId: agents.agentId })
        .from(agents)
        .where(and(eq(agents.instanceId, instanceId), isNull(agents.removedAt)))
        .all()
        .map(({ agentId }) => agentId),
    listen: (listener) => void listeners.push(listener),
  };
}
