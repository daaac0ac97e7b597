import { and, asc, eq, gt, isNull, sql } from "drizzle-orm";
import type { Instances } from "../instances/instances.ts";
import type { Instance } from "../instances/schema.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { isId, newId } from "../lib/id.ts";
import type { Caller } from "../limits/caller.ts";
import { withModelLimits } from "../limits/model-limits.ts";
import type { Quotas } from "../limits/quotas.ts";
import { prepared } from "../storage/prepared.ts";
import type { Removals } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import { decodeText, etagOf, type FileChange } from "../workspace/workspace.ts";
import {
  type AgentChange,
  type AgentListener,
  type NewAgent,
  requireTools,
  type Written,
  withPolicies,
} from "./agent-change.ts";
import type { Preconditions } from "./preconditions.ts";
import { type Agent, agents, type ModelChoice } from "./schema.ts";
import type { ShownTexts } from "./shown-files.ts";
import { freeSlug } from "./slug.ts";
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
  /** Whether the host has a tool of this name, or might come to have it. */
  mayHaveTool(name: string): boolean;
  /** The models that an agent may use. */
  modelChoice: { allows(model: string, instanceId: string): boolean; expected: string };
}

/** An agent and its workspace's texts, as of the commit. */
export interface AgentWithFiles {
  agent: Agent;
  texts: ShownTexts;
}

/** An agent and its instance. */
export interface FoundAgent {
  instance: Instance;
  agent: Agent;
}

/**
 * Runs the operation in a transaction with what `find` returns there; resolves when it is on disk and its commit hooks
 * have run.
 */
export type Commit<Found, Result, T> = (operate: (found: Found) => Result) => Promise<T>;

export interface Agents {
  /** The caller's agent with its instance. Throws `not_found`. */
  get(caller: Caller, instanceId: string, agentId: string): FoundAgent;
  find(agentId: string): Agent | undefined;
  /** The name that is shown, without the rest of the agent. */
  nameOf(agentId: string): string | undefined;
  /**
   * Throws `conflict` for a slug in use or beyond a quota, and `invalid_request` for a bad file or model. Changes to a
   * workspace are checked before their contents are written to disk, and again in the transaction, where `find` looks
   * up the agent, which may have been deleted meanwhile. Everything is in place when this resolves.
   */
  create<T>(find: () => Instance, input: NewAgent, commit: Commit<Instance, AgentWithFiles, T>): Promise<T>;
  /** All or nothing. Throws as `create` does. */
  update<T>(find: () => FoundAgent, change: AgentChange, commit: Commit<FoundAgent, AgentWithFiles, T>): Promise<T>;
  /** Hides it from the commit on; its contents are removed later. Returns its id. */
  remove<T>(find: () => FoundAgent, commit: Commit<FoundAgent, string, T>): Promise<T>;
  /**
   * Writes one file of the workspace, whole or not at all; `isTainted` where its text may be a stranger's. Throws
   * `invalid_request`, `conflict`, `precondition_failed`.
   */
  writeFile<T>(
    find: () => FoundAgent,
    name: string,
    bytes: Uint8Array,
    condition: Preconditions,
    commit: Commit<FoundAgent, Written, T>,
    isTainted?: boolean,
  ): Promise<T>;
  /** Throws `not_found`, `precondition_failed`. */
  deleteFile<T>(
    find: () => FoundAgent,
    name: string,
    condition: Preconditions,
    commit: Commit<FoundAgent, void, T>,
  ): Promise<T>;
  /** Oldest first. */
  list(instanceId: string, after: string | null, limit: number): Agent[];
  idsOf(instanceId: string): string[];
  listen(listener: AgentListener): void;
}

export function createAgents(parts: AgentParts): Agents {
  const { store, clock, instances, workspaces, quotas, removals, defaultFiles, modelChoice, mayHaveTool } = parts;
  const { db } = store;
  const listeners: AgentListener[] = [];
  const hasId = and(eq(agents.agentId, sql.placeholder("agentId")), isNull(agents.removedAt));
  const byId = prepared(db, () => db.select().from(agents).where(hasId));
  const nameById = prepared(db, () => db.select({ name: agents.displayName }).from(agents).where(hasId));
  const stored = store.oncePerSnapshot((agentId) => byId.get({ agentId }));
  const find = (agentId: string) => (isId("agt", agentId) ? stored(agentId) : undefined);
  const bySlug = prepared(db, () =>
    db
      .select({ agentId: agents.agentId })
      .from(agents)
      .where(and(eq(agents.instanceId, sql.placeholder("instanceId")), eq(agents.slug, sql.placeholder("slug")))),
  );
  const isTaken = (instanceId: string, slug: string) => bySlug.get({ instanceId, slug }) !== undefined;
  const slugConflict = (slug: string) => new AppError("conflict", `slug: the instance has an agent "${slug}" already`);

  /** Records a change of the workspace, in its transaction. */
  function touch(agent: Agent): void {
    const updatedAt = Math.max(clock.now(), agent.updatedAt);
    db.update(agents).set({ updatedAt }).where(eq(agents.agentId, agent.agentId)).run();
    for (const listener of listeners) listener.updated?.({ ...agent, updatedAt });
  }

  function tellOfHeartbeat(agent: Agent): void {
    for (const listener of listeners) listener.heartbeatSet?.(agent);
  }

  function requireAllowed(model: ModelChoice | null | undefined, instanceId: string): void {
    if (model == null || [model].flat().every((one) => modelChoice.allows(one, instanceId))) return;
    throw new AppError("invalid_request", `model: expected ${modelChoice.expected}, or null for the host's default`);
  }

  /** The default files that neither exist nor were given. */
  function missingDefaults(isThere: (name: string) => boolean, given: FileChange[]): FileChange[] {
    const known = new Set(given.map(({ name }) => name));
    return [...defaultFiles].flatMap(([name, content]) =>
      known.has(name) || isThere(name) ? [] : [{ name, content }],
    );
  }

  return {
    find,
    nameOf: (agentId) => nameById.get({ agentId })?.name,
    get(caller, instanceId, agentId) {
      const instance = instances.get(caller, instanceId);
      const agent = find(agentId);
      if (agent?.instanceId !== instance.instanceId) throw notFound("agent");
      return { instance, agent };
    },
    create(find, input, commit) {
      requireAllowed(input.model, find().instanceId);
      requireTools(input.tools, mayHaveTool);
      return workspaces.inTurn(find(), bytesOf(input.files), async (stage) => {
        const { instanceId } = find();
        const slug = input.slug ?? freeSlug(input.name, (text) => isTaken(instanceId, text));
        const defaults = input.useDefaults ? missingDefaults(() => false, input.files) : [];
        // Files are checked first: a bad one is a 400, which takes precedence over a 409 (docs/contract/api.md,
        // Conventions).
        const changes = workspaces.check(null, [...defaults, ...input.files]);
        if (isTaken(instanceId, slug)) throw slugConflict(slug);
        const staged = await stage({ kind: "create", slug }, changes);
        return commit(({ accountId }) => {
          if (isTaken(instanceId, slug)) throw slugConflict(slug);
          const now = clock.now();
          const insert = db.insert(agents).values({
            agentId: newId("agt"),
            instanceId,
            name: input.name,
            slug,
            displayName: input.displayName ?? input.name,
            model: input.model,
            tools: withPolicies(null, input.tools),
            heartbeat: input.heartbeat,
            createdAt: now,
            updatedAt: now,
            indexedAt: now,
          });
          const agent = quotas.within(accountId, "agents", () => insert.returning().get());
          quotas.within(accountId, "workspaceBytes", () => workspaces.change(agent, staged));
          if (agent.heartbeat !== null) tellOfHeartbeat(agent);
          return { agent, texts: workspaces.texts(agent, changes) };
        });
      });
    },
    update(find, { files = [], useDefaults, tools: policies = {}, modelLimits: limited = {}, ...fields }, commit) {
      requireAllowed(fields.model, find().instance.instanceId);
      requireTools(policies, mayHaveTool);
      const set = (agent: Agent): Agent => {
        const tools = withPolicies(agent.tools, policies);
        const modelLimits = withModelLimits(agent.modelLimits, limited);
        const change = { ...fields, tools, modelLimits, updatedAt: Math.max(clock.now(), agent.updatedAt) };
        const updated = { ...agent, ...change };
        db.update(agents).set(change).where(eq(agents.agentId, agent.agentId)).run();
        return updated;
      };
      const tell = (updated: Agent) => {
        for (const listener of listeners) listener.updated?.(updated);
        if (fields.heartbeat !== undefined) tellOfHeartbeat(updated);
      };
      if (fields.slug === undefined && files.length === 0 && !useDefaults) {
        return commit(({ agent }) => {
          const updated = set(agent);
          tell(updated);
          return { agent: updated, texts: workspaces.texts(updated) };
        });
      }
      return workspaces.inTurn(find().instance, bytesOf(files), async (stage) => {
        const { agent: before } = find();
        const { slug: from, instanceId } = before;
        const { slug = from } = fields;
        const refuseTaken = () => {
          if (slug !== from && isTaken(instanceId, slug)) throw slugConflict(slug);
        };
        const defaults = useDefaults ? missingDefaults((name) => workspaces.has(before, name), files) : [];
        const changes = workspaces.check(before, [...defaults, ...files]);
        refuseTaken();
        const target = slug === from ? ({ kind: "edit", slug } as const) : ({ kind: "rename", slug, from } as const);
        const staged = await stage(target, changes);
        return commit(({ agent, instance }) => {
          workspaces.recheck(agent, changes);
          refuseTaken();
          const updated = set(agent);
          quotas.within(instance.accountId, "workspaceBytes", () => workspaces.change(agent, staged));
          tell(updated);
          // The folder has not been moved before the commit.
          return { agent: updated, texts: workspaces.texts(agent, changes) };
        });
      });
    },
    remove: (find, commit) =>
      workspaces.inTurn(find().instance, 0, async (stage) => {
        const staged = await stage({ kind: "remove", slug: find().agent.slug }, []);
        return commit(({ agent }) => {
          const { agentId } = agent;
          for (const listener of listeners) listener.removed?.(agent);
          workspaces.change(agent, staged);
          // An id is not a valid slug, so this frees the slug and never names a folder.
          db.update(agents).set({ removedAt: clock.now(), slug: agentId }).where(eq(agents.agentId, agentId)).run();
          removals.add("agent", agentId);
          return agentId;
        });
      }),
    writeFile(find, name, bytes, condition, commit, isTainted) {
      decodeText(bytes);
      return workspaces.inTurn(find().instance, bytes.byteLength, async (stage) => {
        const { agent: before } = find();
        const { changes } = workspaces.checkWrite(before, name, bytes, condition);
        const staged = await stage({ kind: "edit", slug: before.slug }, changes);
        return commit(({ agent, instance }) => {
          const { created } = workspaces.checkWrite(agent, name, bytes, condition);
          const [file] = quotas.within(instance.accountId, "workspaceBytes", () =>
            workspaces.change(agent, staged, isTainted),
          );
          if (file === undefined) throw new TypeError("a file was written");
          touch(agent);
          return { created, file, etag: etagOf(bytes) };
        });
      });
    },
    deleteFile: (find, name, condition, commit) =>
      workspaces.inTurn(find().instance, 0, async (stage) => {
        const { agent: before } = find();
        const changes = workspaces.checkDelete(before, name, condition);
        const staged = await stage({ kind: "edit", slug: before.slug }, changes);
        return commit(({ agent }) => {
          workspaces.checkDelete(agent, name, condition);
          workspaces.change(agent, staged);
          touch(agent);
        });
      }),
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

const bytesOf = (files: readonly FileChange[]): number =>
  files.reduce((sum, { content }) => sum + (content === null ? 0 : Buffer.byteLength(content)), 0);
