import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { FoundAgent } from "../agents/agents.ts";
import type { Agent } from "../agents/schema.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import type { ApprovalRules } from "../approvals/rules.ts";
import { AppError } from "../lib/app-error.ts";
import { type Clock, isoTime } from "../lib/clock.ts";
import type { FairTurns } from "../limits/fair-turns.ts";
import { createPause, type Pause } from "../limits/slices.ts";
import { createSlots } from "../limits/slots.ts";
import type { Transfer } from "../messages/transfer.ts";
import type { Schedules } from "../schedules/schedules.ts";
import type { Skills } from "../skills/skills.ts";
import { pauseAfter } from "../storage/background-work.ts";
import {
  BUNDLE_BOUNDS,
  createLeftOut,
  HISTORY_PART,
  MANIFEST_FILE,
  type Manifest,
  manifestOf,
  SCHEDULES_PART,
  SKILLS_PART,
  WORKSPACE_PART,
} from "./format.ts";
import { createLineWriter, headingOf } from "./history.ts";
import { tooMany } from "./places.ts";
import { createRedaction, type Redaction } from "./redaction.ts";
import { scheduleFile } from "./schedules.ts";
import { openScratchFile, type Range, type ScratchFile } from "./scratch-file.ts";
import { tarEnd, tarHeader, tarPadding } from "./tar.ts";

export interface ExportParts {
  dataDir: string;
  clock: Clock;
  workspaces: Workspaces;
  skills: Pick<Skills, "list" | "read">;
  rules: Pick<ApprovalRules, "page">;
  transfer: Transfer;
  schedules: Pick<Schedules, "page">;
  /** The agent's files with lines that a stranger may have written: where each is from stays behind, so all of it counts. */
  untrustedFiles(agentId: string): ReadonlySet<string>;
  /** All values of an instance's secrets, by name. */
  secretValues(instanceId: string): ReadonlyMap<string, string>;
  turns: FairTurns;
}

/** A bundle on this host's disk, without a name there. */
export interface Bundle {
  size: number;
  chunks(): AsyncGenerator<Uint8Array>;
  /** Frees its space and its place. Calling it again does nothing. */
  close(): void;
}

export interface Exports {
  /**
   * Packs an agent as it is at one moment. `find` returns it as it is now. Throws `conflict` for a history that is too
   * long or was cleared meanwhile, `rate_limited` or 503 if too many bundles are being packed or downloaded.
   */
  pack(find: () => FoundAgent, options: { withHistory: boolean }): Promise<Bundle>;
}

/** Bundles that are packed or downloaded at once. */
const PLACES = { total: 8, maxPerOwner: 2 };
const FILES_AT_ONCE = 100;
const WRITE_BYTES = 1024 * 1024;
const MAX_SKILLS = 100;
const MAX_RULES = 1_000;

/** A file of a bundle, kept until all that belongs to the moment is there. `isFinal` has no secret's value any more. */
interface Kept {
  name: string;
  range: Range;
  modifiedAtMs: number;
  isFinal: boolean;
}

export function createExports(parts: ExportParts): Exports {
  const { dataDir, clock, workspaces, skills, schedules, rules, transfer, secretValues, untrustedFiles, turns } = parts;
  const places = createSlots(PLACES);

  /** The workspace's files, copied while nothing else of the account changes one. */
  async function keepWorkspace(
    agent: Agent,
    kept: Kept[],
    scratch: ScratchFile,
    leftOut: (name: string) => void,
    newPause: () => Pause,
  ) {
    const tainted: string[] = [];
    const untrusted = untrustedFiles(agent.agentId);
    let waiting: Uint8Array[] = [];
    let bytes = 0;
    /** Most files are small, and each write of the disk takes its time. */
    const write = async () => {
      await scratch.append(Buffer.concat(waiting));
      [waiting, bytes] = [[], 0];
      // The disk's time is not the thread's.
      pause = newPause();
    };
    let pause = newPause();
    for (let after: string | null = ""; after !== null; ) {
      const page = workspaces.list(agent, after, FILES_AT_ONCE);
      const names = page.map(({ name }) => name);
      tainted.push(...new Set([...workspaces.taintedOf(agent, names), ...names.filter((name) => untrusted.has(name))]));
      for (const { name, updatedAt } of page) {
        const content = contentOf(agent, name);
        if (content === null) leftOut(WORKSPACE_PART + name);
        else {
          const range = { at: scratch.size() + bytes, size: content.byteLength };
          kept.push({ name: WORKSPACE_PART + name, range, modifiedAtMs: updatedAt, isFinal: false });
          waiting.push(content);
          bytes += content.byteLength;
          if (bytes >= WRITE_BYTES) await write();
        }
        const wait = pause();
        if (wait) await wait;
      }
      after = page.length < FILES_AT_ONCE ? null : (names.at(-1) ?? null);
    }
    await write();
    return tainted;
  }

  /** Null for what an operator has removed, or made larger than a file may be. */
  function contentOf(agent: Agent, name: string): Uint8Array | null {
    try {
      return workspaces.read(agent, name).bytes;
    } catch (error) {
      if (error instanceof AppError) return null;
      throw error;
    }
  }

  async function keepSkills(instanceId: string, kept: Kept[], scratch: ScratchFile, leftOut: (name: string) => void) {
    for (const { name, installedAt } of skills.list(instanceId, null, MAX_SKILLS)) {
      const startedMs = performance.now();
      try {
        for (const [file, text] of skills.read(instanceId, name).files) {
          const range = await scratch.append(Buffer.from(text));
          kept.push({ name: `${SKILLS_PART}${name}/${file}`, range, modifiedAtMs: installedAt, isFinal: false });
        }
      } catch (error) {
        // It was removed just now, or is not what was installed.
        if (!(error instanceof AppError)) throw error;
        leftOut(SKILLS_PART + name);
      }
      await pauseAfter(performance.now() - startedMs);
    }
  }

  async function keepSchedules(agentId: string, kept: Kept[], scratch: ScratchFile): Promise<void> {
    const planned = schedules
      .page(agentId, null, BUNDLE_BOUNDS.schedules + 1)
      .filter(({ kind }) => kind === "schedule");
    for (const [index, schedule] of planned.entries()) {
      const name = `${SCHEDULES_PART}${String(index + 1).padStart(3, "0")}.json`;
      const range = await scratch.append(scheduleFile(schedule));
      kept.push({ name, range, modifiedAtMs: schedule.updatedAt, isFinal: false });
    }
  }

  async function keepHistory(
    moment: ReturnType<Transfer["begin"]>,
    kept: Kept[],
    scratch: ScratchFile,
    redaction: Redaction,
  ): Promise<void> {
    let left: number = BUNDLE_BOUNDS.historyBytes;
    for (const [index, conversation] of moment.conversations.entries()) {
      const at = scratch.size();
      const lineOf = createLineWriter(redaction.text);
      await scratch.append(Buffer.from(headingOf(conversation)));
      for (let after: number | null = 0; after !== null; ) {
        const startedMs = performance.now();
        const { rows, hasMore } = transfer.page(moment, conversation, after);
        const lines: string[] = [];
        for (const row of rows) lines.push(await lineOf(row));
        left -= (await scratch.append(Buffer.from(lines.join("")))).size;
        if (left < 0) throw tooLong();
        after = hasMore ? (rows.at(-1)?.messageSeq ?? null) : null;
        await pauseAfter(performance.now() - startedMs);
      }
      const range = { at, size: scratch.size() - at };
      const name = `${HISTORY_PART}${String(index + 1).padStart(4, "0")}.jsonl`;
      kept.push({ name, range, modifiedAtMs: conversation.updatedAt, isFinal: true });
    }
    if (!transfer.isWhole(moment)) {
      throw new AppError("conflict", "a conversation was cleared or deleted during the export; try again");
    }
  }

  async function* archiveOf(manifest: Buffer, kept: readonly Kept[], scratch: ScratchFile, redaction: Redaction) {
    yield* file({ name: MANIFEST_FILE, modifiedAtMs: clock.now() }, manifest);
    for (const { name, range, modifiedAtMs, isFinal } of kept) {
      if (!isFinal) {
        yield* file({ name, modifiedAtMs }, await redaction.bytes(await scratch.read(range)));
        continue;
      }
      yield tarHeader({ name, size: range.size, modifiedAtMs });
      yield* scratch.chunks(range);
      yield tarPadding(range.size);
    }
    yield tarEnd();
  }

  /** Finds what an operator has changed on disk. */
  async function refresh(find: () => FoundAgent): Promise<void> {
    const { agent } = find();
    const known = workspaces.reindexing.ready([agent]);
    if (known !== null) await known;
    workspaces.refresh(find().agent);
  }

  async function pack(find: () => FoundAgent, withHistory: boolean): Promise<ScratchFile> {
    await refresh(find);
    const scratch = await openScratchFile(dataDir);
    const { accountId } = find().instance;
    const newPause = () => createPause(turns, accountId);
    try {
      const kept: Kept[] = [];
      const leftOut = createLeftOut();
      const { agent, tainted, moment } = await workspaces.inTurn(find().instance, 0, async () => {
        const { agent } = find();
        const moment = transfer.begin(agent);
        return { agent, moment, tainted: await keepWorkspace(agent, kept, scratch, leftOut.add, newPause) };
      });
      const { instanceId, agentId } = agent;
      await keepSkills(instanceId, kept, scratch, leftOut.add);
      await keepSchedules(agentId, kept, scratch);
      const redaction = await createRedaction(secretValues(instanceId), newPause);
      if (withHistory) await keepHistory(moment, kept, scratch, redaction);
      const manifest: Omit<Manifest, "bundle" | "version"> = {
        exportedAt: isoTime(clock.now()),
        agent: {
          name: agent.name,
          slug: agent.slug,
          displayName: agent.displayName,
          model: [agent.model].flat()[0] ?? null,
          fallbackModels: [agent.model]
            .flat()
            .slice(1)
            .filter((model) => model !== null),
          modelLimits: agent.modelLimits,
          tools: Object.entries(agent.tools ?? {}).map(([tool, policy]) => ({ tool, policy })),
          heartbeat: agent.heartbeat,
        },
        rules: rules
          .page(instanceId, null, MAX_RULES)
          .filter((rule) => rule.agentId === agentId)
          .map(({ tool, host, method }) => ({ tool, host, method })),
        tainted,
        leftOut: leftOut.list(),
      };
      const packed = await openScratchFile(dataDir);
      try {
        const archive = Readable.from(archiveOf(manifestOf(manifest), kept, scratch, redaction));
        await pipeline(archive, createGzip(), async (compressed: AsyncIterable<Uint8Array>) => {
          for await (const chunk of compressed) await packed.append(chunk);
        });
      } catch (error) {
        await packed.close();
        throw error;
      }
      return packed;
    } finally {
      await scratch.close();
    }
  }

  return {
    async pack(find, { withHistory }) {
      const { accountId } = find().instance;
      const taken = places.acquire(accountId);
      if (taken !== "taken") throw tooMany(taken);
      let packed: ScratchFile | null = null;
      let isOpen = true;
      const close = () => {
        if (!isOpen) return;
        isOpen = false;
        places.release(accountId);
        void packed?.close().catch(() => {});
      };
      try {
        packed = await pack(find, withHistory);
        const whole = { at: 0, size: packed.size() };
        const { chunks } = packed;
        return { size: whole.size, chunks: () => chunks(whole), close };
      } catch (error) {
        close();
        throw error;
      }
    },
  };
}

function* file(of: { name: string; modifiedAtMs: number }, bytes: Uint8Array): Generator<Uint8Array> {
  yield tarHeader({ ...of, size: bytes.byteLength });
  if (bytes.byteLength > 0) yield bytes;
  yield tarPadding(bytes.byteLength);
}

const tooLong = () =>
  new AppError(
    "conflict",
    `history: expected at most ${BUNDLE_BOUNDS.historyBytes} bytes of messages; export the agent without it, or delete conversations`,
  );
