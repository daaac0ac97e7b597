import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { FoundAgent } from "../agents/agents.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import type { ApprovalRules } from "../approvals/rules.ts";
import { type Clock, isoTime } from "../lib/clock.ts";
import type { FairTurns } from "../limits/fair-turns.ts";
import { createSlices } from "../limits/slices.ts";
import { createSlots } from "../limits/slots.ts";
import type { Transfer } from "../messages/transfer.ts";
import { cut, MANIFEST_FILE, MAX_LABEL, type Manifest, manifestOf } from "./format.ts";
import { createKeptFiles, type KeptFile, type KeptFileParts } from "./kept-files.ts";
import { tooMany } from "./places.ts";
import { createRedaction } from "./redaction.ts";
import { openScratchFile, type ScratchFile } from "./scratch-file.ts";
import { tarEnd, tarHeader, tarPadding } from "./tar.ts";

export interface ExportParts extends KeptFileParts {
  dataDir: string;
  clock: Clock;
  workspaces: Workspaces;
  rules: Pick<ApprovalRules, "page">;
  transfer: Transfer;
  /** All values of an instance's secrets, by name. */
  secretValues(instanceId: string): ReadonlyMap<string, string>;
  /** Of what is done in slices. */
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
const MAX_RULES = 1_000;

export function createExports(parts: ExportParts): Exports {
  const { dataDir, clock, workspaces, rules, transfer, secretValues, turns } = parts;
  const places = createSlots(PLACES);

  async function* archiveOf(manifest: Buffer, kept: readonly KeptFile[], scratch: ScratchFile) {
    yield tarHeader({ name: MANIFEST_FILE, size: manifest.byteLength, modifiedAtMs: clock.now() });
    yield manifest;
    yield tarPadding(manifest.byteLength);
    for (const { name, range, modifiedAtMs } of kept) {
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
    try {
      const inSlices = createSlices(turns, find().instance.accountId);
      const kept = createKeptFiles(parts, scratch, inSlices);
      const { agent, moment } = await workspaces.inTurn(find().instance, 0, async () => {
        const { agent } = find();
        const moment = transfer.begin(agent);
        await kept.keepWorkspace(agent);
        return { agent, moment };
      });
      const { instanceId, agentId } = agent;
      await kept.keepSkills(instanceId);
      const redaction = await createRedaction(secretValues(instanceId), inSlices);
      await kept.redact(redaction);
      await kept.keepSchedules(agentId, redaction);
      if (withHistory) await kept.keepHistory(moment, redaction);
      const isClean = async (text: string) => (await redaction.text(text)) === text;
      const labelOf = async (text: string) => cut(await redaction.text(text), MAX_LABEL);
      /** Leaves out what a secret stands in: under another name it would be about nothing. */
      async function onlyClean<T>(all: readonly T[], wordsOf: (one: T) => string): Promise<T[]> {
        const clean: T[] = [];
        for (const one of all) {
          if (await isClean(wordsOf(one))) clean.push(one);
          else kept.leftOut.add(`${MANIFEST_FILE}: ${wordsOf(one)}`);
        }
        return clean;
      }
      const policies = Object.entries(agent.tools ?? {}).map(([tool, policy]) => ({ tool, policy }));
      // The host's own tools are no secret, whatever else has their names; those of MCP servers are `server__tool`.
      const tools = await onlyClean(policies, ({ tool }) => (tool.includes("__") ? tool : ""));
      const own = rules.page(instanceId, null, MAX_RULES).filter((rule) => rule.agentId === agentId);
      const remembered = await onlyClean(own, ({ tool, host, method }) => `${tool} ${host} ${method}`);
      const manifest: Omit<Manifest, "bundle" | "version"> = {
        exportedAt: isoTime(clock.now()),
        agent: {
          name: await labelOf(agent.name),
          // Without one, an import makes it of the name.
          slug: (await isClean(agent.slug)) ? agent.slug : null,
          displayName: await labelOf(agent.displayName),
          model: [agent.model].flat()[0] ?? null,
          fallbackModels: [agent.model]
            .flat()
            .slice(1)
            .filter((model) => model !== null),
          modelLimits: agent.modelLimits,
          tools,
          heartbeat: agent.heartbeat,
        },
        rules: remembered.map(({ tool, host, method }) => ({ tool, host, method })),
        tainted: kept.tainted,
        leftOut: await kept.leftOut.listIn(redaction.text),
      };
      const packed = await openScratchFile(dataDir);
      try {
        const archive = Readable.from(archiveOf(manifestOf(manifest), kept.files, scratch));
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
