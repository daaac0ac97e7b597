import fs from "node:fs";
import type { Commit } from "../agents/agents.ts";
import type { Arrivals } from "../agents/arrivals.ts";
import type { Agent, ToolPolicies } from "../agents/schema.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import type { Instance } from "../instances/schema.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Quotas } from "../limits/quotas.ts";
import { createSlots } from "../limits/slots.ts";
import type { NewMessageRow } from "../messages/queries.ts";
import type { Transfer } from "../messages/transfer.ts";
import type { ScheduleSettings, Schedules } from "../schedules/schedules.ts";
import { pauseAfter } from "../storage/background-work.ts";
import type { Store } from "../storage/store.ts";
import type { Policy } from "../tools/tool.ts";
import { type Manifest, refusal } from "./format.ts";
import { createLineReader, linesIn, parseHeading } from "./history.ts";
import { tooMany } from "./places.ts";
import { type Review, reviewSkills, type SkillReviewParts } from "./review.ts";
import { clearScratch, scratchPath } from "./scratch-file.ts";
import { type Unpacked, unpack } from "./unpack.ts";

export interface ImportParts extends SkillReviewParts {
  dataDir: string;
  store: Store;
  clock: Clock;
  log: Log;
  arrivals: Arrivals;
  workspaces: Pick<Workspaces, "index">;
  transfer: Transfer;
  schedules: Pick<Schedules, "create" | "setHeartbeat">;
  quotas: Pick<Quotas, "requireRoom">;
  mayHaveTool(name: string): boolean;
  modelAllowed(model: string, instanceId: string): boolean;
}

export interface Imported {
  agent: Agent;
  conversations: number;
  messages: number;
  review: Review;
}

export interface Imports {
  /**
   * Creates an agent from a bundle: all of it or nothing, and nothing of it is run or fetched. With a `name` it gets that
   * one, and a slug made from it. Throws `invalid_request` for a bundle that no export makes, `conflict` for a slug in use
   * or beyond a quota, `rate_limited` or 503 if too many bundles are being unpacked.
   */
  import<T>(
    find: () => Instance,
    archive: Uint8Array,
    name: string | null,
    commit: Commit<Instance, Imported, T>,
  ): Promise<T>;
  /** After a start, before anything else: removes what a process has left that was killed. */
  recover(): void;
  /** Resolves when that is done. */
  settled(): Promise<void>;
}

/** Bundles that are unpacked at once; each may hold its archive in memory. */
const PLACES = { total: 3, maxPerOwner: 1 };
/** Rows that one commit writes. */
const ROWS_AT_ONCE = 100;
const TEXT_AT_ONCE = 256 * 1024;

export function createImports(parts: ImportParts): Imports {
  const { dataDir, store, clock, log, arrivals, workspaces, transfer, schedules, quotas } = parts;
  const places = createSlots(PLACES);
  let clearing: Promise<void> = Promise.resolve();

  /** A commit that others come between. Nobody sees what it writes yet. */
  async function slice<T>({ accountId }: Pick<Instance, "accountId">, work: () => T): Promise<T> {
    const startedMs = performance.now();
    const result = await store.commitSoon(work, "process", accountId);
    await pauseAfter(performance.now() - startedMs);
    return result;
  }

  async function addFiles(
    find: () => Instance,
    agent: Agent,
    { files, manifest: { tainted } }: Unpacked,
  ): Promise<void> {
    const marked = tainted === true ? null : new Set(tainted);
    for (let at = 0; at < files.length; at += ROWS_AT_ONCE) {
      const some = files.slice(at, at + ROWS_AT_ONCE);
      await slice(find(), () => workspaces.index(agent.agentId, some, (name) => marked?.has(name) ?? true));
    }
  }

  /** Returns how many messages there were. */
  async function addConversation(find: () => Instance, agent: Agent, path: string, isFirst: boolean): Promise<number> {
    let read: ((line: Buffer) => NewMessageRow) | null = null;
    let messages = 0;
    let waiting: NewMessageRow[] = [];
    let bytes = 0;
    const write = async () => {
      const rows = waiting;
      messages += rows.length;
      [waiting, bytes] = [[], 0];
      if (rows.length > 0) await slice(find(), () => transfer.add(find().accountId, rows));
    };
    for await (const line of linesIn(fs.createReadStream(path))) {
      if (read === null) {
        const { createdAt, origin: originType, ...heading } = parseHeading(line);
        const now = clock.now();
        const at = Math.min(Date.parse(createdAt), now);
        if (heading.isDefault && !isFirst) throw refusal("history: expected the default conversation as the first one");
        const conversationId = await slice(find(), () =>
          transfer.addConversation(agent, { ...heading, originType, createdAt: at }),
        );
        read = createLineReader({ agentId: agent.agentId, conversationId, now });
        continue;
      }
      const row = read(line);
      waiting.push(row);
      bytes += row.text.length;
      if (waiting.length >= ROWS_AT_ONCE || bytes >= TEXT_AT_ONCE) await write();
    }
    await write();
    return messages;
  }

  async function addSchedule(find: () => Instance, agent: Agent, settings: ScheduleSettings): Promise<void> {
    const { name, model } = settings;
    const own = model !== null && parts.modelAllowed(model, agent.instanceId) ? model : null;
    try {
      await slice(find(), () => schedules.create(agent, find().accountId, { ...settings, model: own }));
    } catch (error) {
      if (error instanceof AppError && error.code === "invalid_request")
        throw refusal(`schedule ${name}: ${error.message}`);
      throw error;
    }
  }

  async function arrive<T>(
    find: () => Instance,
    unpacked: Unpacked,
    name: string | null,
    commit: Commit<Instance, Imported, T>,
  ): Promise<T> {
    const { manifest, workspace, skills, history, schedules: planned, leftOut } = unpacked;
    const { instanceId } = find();
    const reviewed = await reviewSkills(parts, instanceId, skills, leftOut.add);
    const { tools, off } = sortPolicies(manifest.agent.tools, parts.mayHaveTool);
    const { model: first, fallbackModels, modelLimits = null, heartbeat } = manifest.agent;
    const models = first == null ? [] : [first, ...fallbackModels];
    const offered = models.filter((model) => parts.modelAllowed(model, instanceId));
    const review: Review = {
      skills: reviewed,
      policies: off,
      rules: manifest.rules,
      model: models.find((model) => !offered.includes(model)) ?? null,
      schedules: planned.map(({ name, cron, everySeconds, timeZone }) => ({ name, cron, everySeconds, timeZone })),
      heartbeat,
      leftOut: leftOut.list(),
    };
    const input = {
      name: name ?? manifest.agent.name,
      displayName: name ?? manifest.agent.displayName ?? manifest.agent.name,
      model: offered.length > 1 ? offered : (offered[0] ?? null),
      modelLimits,
      tools,
      heartbeat,
    };
    const agent = await slice(find(), () => arrivals.begin(find(), input));
    try {
      await addFiles(find, agent, unpacked);
      if (heartbeat !== null) await slice(find(), () => schedules.setHeartbeat(agent, false));
      for (const settings of planned) await addSchedule(find, agent, settings);
      let messages = 0;
      for (const [index, path] of history.entries()) messages += await addConversation(find, agent, path, index === 0);
      const slug = name === null ? (manifest.agent.slug ?? null) : null;
      return await arrivals.complete(find, agent, slug, workspace, (operate) =>
        commit((instance) => ({
          agent: operate(instance),
          conversations: history.length,
          messages,
          review,
        })),
      );
    } catch (error) {
      await store
        .commitSoon(() => arrivals.discard(agent.agentId), "process")
        .catch((err: unknown) =>
          log.warn({ err }, "a part of an import could not be removed; the next start removes it"),
        );
      throw error;
    }
  }

  const notRemoved = (err: unknown) =>
    log.warn({ err }, "what an import has left on the disk could not be removed; the next start tries again");

  return {
    async import(find, archive, name, commit) {
      const { accountId } = find();
      const taken = places.acquire(accountId);
      if (taken !== "taken") throw tooMany(taken);
      const folder = await scratchPath(dataDir).catch((error: unknown) => {
        places.release(accountId);
        throw error;
      });
      try {
        const unpacked = await unpack(archive, folder);
        quotas.requireRoom(accountId, "agents");
        return await arrive(find, unpacked, name, commit);
      } finally {
        places.release(accountId);
        await fs.promises.rm(folder, { recursive: true, force: true }).catch(notRemoved);
      }
    },
    recover() {
      arrivals.recover();
      clearing = clearScratch(dataDir).catch(notRemoved);
    },
    settled: () => clearing,
  };
}

/** What only restricts the agent is kept. What allows it more is switched off, and so is what this host does not know. */
function sortPolicies(
  given: Manifest["agent"]["tools"],
  mayHaveTool: (name: string) => boolean,
): { tools: ToolPolicies | null; off: { tool: string; policy: Policy }[] } {
  const keeps = ({ tool, policy }: { tool: string; policy: Policy }) =>
    (policy === "deny" || policy === "ask") && mayHaveTool(tool);
  const kept = given.filter(keeps);
  return {
    tools: kept.length === 0 ? null : Object.fromEntries(kept.map(({ tool, policy }) => [tool, policy])),
    off: given.filter((one) => !keeps(one)),
  };
}
