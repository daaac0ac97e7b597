import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { Caller } from "../accounts/caller.ts";
import type { Instances } from "../instances/instances.ts";
import { type Instance, instances as instanceTable } from "../instances/table.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import { lazily } from "../lib/lazily.ts";
import type { Store } from "../storage/store.ts";
import { freeSlug } from "./slug.ts";
import { type Agent, agents } from "./table.ts";
import type { FileChange } from "./workspace.ts";
import type { Workspaces } from "./workspaces.ts";

export interface AgentParts {
  store: Store;
  clock: Clock;
  instances: Instances;
  workspaces: Workspaces;
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
  files: Record<string, string>;
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
  /** Throws `conflict` for a slug that the instance has, `invalid_request` for a file or a model. The files follow the commit. */
  create(instance: Instance, input: NewAgent): AgentWithFiles;
  /** All or nothing; the files follow the commit. Throws as `create` does. */
  update(agent: Agent, change: AgentChange): AgentWithFiles;
  remove(instance: Instance, agent: Agent): void;
  /** Tells the listeners that the workspace was changed from outside `update`. */
  touch(agent: Agent): void;
  /** Oldest first. */
  list(instanceId: string, after: string | null, limit: number): Agent[];
  idsOf(instanceId: string): string[];
  listen(listener: AgentListener): void;
}

export function createAgents(parts: AgentParts): Agents {
  const { store, clock, instances, workspaces, defaultFiles, modelChoice } = parts;
  const { db } = store;
  const listeners: AgentListener[] = [];
  const byId = lazily(() =>
    db
      .select()
      .from(agents)
      .where(eq(agents.agentId, sql.placeholder("agentId")))
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

  function count(instanceId: string, change: 1 | -1): void {
    db.update(instanceTable)
      .set({ agentCount: sql`${instanceTable.agentCount} + ${change}` })
      .where(eq(instanceTable.instanceId, instanceId))
      .run();
  }

  function requireAllowed(model: string | null | undefined): void {
    if (model == null || modelChoice.allows(model)) return;
    throw new AppError("invalid_request", `model: expected ${modelChoice.expected}, or null for the host's default`);
  }

  /** The default files that are neither there nor given. */
  function missingDefaults(present: Iterable<string>, given: FileChange[]): FileChange[] {
    const known = new Set([...present, ...given.map(({ name }) => name)]);
    return [...defaultFiles].flatMap(([name, content]) => (known.has(name) ? [] : [{ name, content }]));
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
        const { instanceId } = instance;
        const slug = input.slug ?? freeSlug(input.name, (text) => isTaken(instanceId, text));
        const changes = [...(input.useDefaults ? missingDefaults([], input.files) : []), ...input.files];
        // The files are judged first: a bad one is a 400, which comes before a 409 (api.md section 1).
        workspaces.change({ instanceId, slug }, { kind: "create", slug }, changes);
        if (isTaken(instanceId, slug)) throw slugConflict(slug);
        const now = clock.now();
        const agent = db
          .insert(agents)
          .values({
            agentId: newId("agt"),
            instanceId,
            name: input.name,
            slug,
            displayName: input.displayName ?? input.name,
            model: input.model,
            createdAt: now,
            updatedAt: now,
          })
          .returning()
          .get();
        count(instanceId, 1);
        return { agent, files: overlay({}, changes) };
      });
    },
    update(agent, { files = [], useDefaults, ...fields }) {
      requireAllowed(fields.model);
      return store.transaction(() => {
        const { agentId, instanceId, slug: from } = agent;
        const { slug = from } = fields;
        const before = workspaces.texts(agent);
        const changes = [...(useDefaults ? missingDefaults(workspaces.names(agent), files) : []), ...files];
        if (slug !== from) workspaces.change(agent, { kind: "rename", slug, from }, changes);
        else if (changes.length > 0) workspaces.change(agent, { kind: "edit", slug }, changes);
        if (slug !== from && isTaken(instanceId, slug)) throw slugConflict(slug);
        const updatedAt = Math.max(clock.now(), agent.updatedAt);
        db.update(agents)
          .set({ ...fields, updatedAt })
          .where(eq(agents.agentId, agentId))
          .run();
        const updated = { ...agent, ...fields, updatedAt };
        for (const listener of listeners) listener.updated(updated);
        return { agent: updated, files: overlay(before, changes) };
      });
    },
    remove(instance, agent) {
      store.transaction(() => {
        for (const listener of listeners) listener.removed(agent);
        db.delete(agents).where(eq(agents.agentId, agent.agentId)).run();
        count(instance.instanceId, -1);
        workspaces.change(agent, { kind: "remove", slug: agent.slug }, []);
      });
    },
    touch(agent) {
      store.transaction(() => {
        db.update(agents).set({ updatedAt: clock.now() }).where(eq(agents.agentId, agent.agentId)).run();
        for (const listener of listeners) listener.updated(agent);
      });
    },
    list: (instanceId, after, limit) =>
      db
        .select()
        .from(agents)
        .where(and(eq(agents.instanceId, instanceId), after === null ? undefined : gt(agents.agentId, after)))
        .orderBy(asc(agents.agentId))
        .limit(limit)
        .all(),
    idsOf: (instanceId) =>
      db
        .select({ agentId: agents.agentId })
        .from(agents)
        .where(eq(agents.instanceId, instanceId))
        .all()
        .map(({ agentId }) => agentId),
    listen: (listener) => void listeners.push(listener),
  };
}

function overlay(texts: Record<string, string>, changes: FileChange[]): Record<string, string> {
  const after = new Map(Object.entries(texts));
  for (const { name, content } of changes) {
    if (typeof content === "string") after.set(name, content);
    else after.delete(name);
  }
  return Object.fromEntries([...after].sort(([a], [b]) => (a < b ? -1 : 1)));
}
