import type { Agent } from "../agents/schema.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import { AppError } from "../lib/app-error.ts";
import { hasCode } from "../lib/system-error.ts";
import type { InSlices } from "../limits/slices.ts";
import type { Message } from "../messages/schema.ts";
import type { Moment, Transfer } from "../messages/transfer.ts";
import type { Schedules } from "../schedules/schedules.ts";
import type { Skills } from "../skills/skills.ts";
import { MAX_NAME_PARTS } from "../workspace/file-name.ts";
import { MAX_WORKSPACE_FILES } from "../workspace/workspace.ts";
import { cleanNames } from "./clean-names.ts";
import {
  BUNDLE_BOUNDS,
  createLeftOut,
  HISTORY_PART,
  type LeftOut,
  SCHEDULES_PART,
  SKILLS_PART,
  WORKSPACE_PART,
} from "./format.ts";
import { createLineWriter, headingOf, redactMessage } from "./history.ts";
import type { Redaction } from "./redaction.ts";
import { scheduleFile } from "./schedules.ts";
import type { Range, ScratchFile } from "./scratch-file.ts";

export interface KeptFileParts {
  workspaces: Pick<Workspaces, "list" | "read" | "taintedOf" | "entriesSoon">;
  skills: Pick<Skills, "list" | "read">;
  transfer: Pick<Transfer, "page" | "isWhole">;
  schedules: Pick<Schedules, "page">;
  /** The agent's files with lines that a stranger may have written: where each is from stays behind, so all of it counts. */
  untrustedFiles(agentId: string): ReadonlySet<string>;
}

/** A file of a bundle, in the scratch file. */
export interface KeptFile {
  name: string;
  range: Range;
  modifiedAtMs: number;
}

/** The files of a bundle, kept until all that belongs to the moment is there. */
export interface KeptFiles {
  readonly files: readonly KeptFile[];
  readonly leftOut: LeftOut;
  /** The names of the workspace's files that are tainted. */
  readonly tainted: string[];
  /** The workspace's files; nothing else of the account may change one meanwhile. */
  keepWorkspace(agent: Agent): Promise<void>;
  keepSkills(instanceId: string): Promise<void>;
  /** Takes the values of secrets out of what is kept so far, and out of its names. */
  redact(redaction: Redaction): Promise<void>;
  keepSchedules(agentId: string, redaction: Redaction): Promise<void>;
  /** Throws `conflict` if it is too long, or was cleared meanwhile. */
  keepHistory(moment: Moment, redaction: Redaction): Promise<void>;
}

const FILES_AT_ONCE = 100;
/** Looked through for what is no file: an operator's tree may be of any size. */
const MAX_FOLDERS = MAX_WORKSPACE_FILES;
const WRITE_BYTES = 1024 * 1024;
const MAX_SKILLS = 100;

export function createKeptFiles(parts: KeptFileParts, scratch: ScratchFile, inSlices: InSlices): KeptFiles {
  const { workspaces, skills, transfer, schedules, untrustedFiles } = parts;
  let files: KeptFile[] = [];
  let tainted: string[] = [];
  const leftOut = createLeftOut();

  /** Null for what an operator has removed, or made larger than a file may be. */
  function contentOf(agent: Agent, name: string): Uint8Array | null {
    try {
      return workspaces.read(agent, name).bytes;
    } catch (error) {
      if (error instanceof AppError) return null;
      throw error;
    }
  }

  /** What an operator has put among the files, and no request shows: links, other names, too many. */
  async function noteOthers(agent: Agent, listed: ReadonlySet<string>): Promise<void> {
    const folders: string[][] = [[]];
    for (let looked = 0; folders.length > 0; looked++) {
      const parts = folders.pop() ?? [];
      const nameOf = (part: string) => [...parts, part].join("/");
      if (looked === MAX_FOLDERS)
        return leftOut.add(`${WORKSPACE_PART}: what else is in more than ${MAX_FOLDERS} folders`);
      const entries = await workspaces.entriesSoon(agent, parts).catch(ifForbidden);
      if (entries === null) leftOut.add(`${WORKSPACE_PART}${parts.join("/")}/`);
      await inSlices(() => {
        for (const { part, kind } of entries ?? []) {
          if (kind === "folder" && parts.length + 1 < MAX_NAME_PARTS) folders.push([...parts, part]);
          else if (!listed.has(nameOf(part))) leftOut.add(WORKSPACE_PART + nameOf(part));
        }
      });
    }
  }

  return {
    get files() {
      return files;
    },
    get tainted() {
      return tainted;
    },
    leftOut,

    async keepWorkspace(agent) {
      const listed = new Set<string>();
      const untrusted = untrustedFiles(agent.agentId);
      let waiting: Uint8Array[] = [];
      let bytes = 0;
      /** Most files are small, and each write of the disk takes its time. */
      const write = async () => {
        await scratch.append(await inSlices(() => Buffer.concat(waiting)));
        [waiting, bytes] = [[], 0];
      };
      for (let after: string | null = ""; after !== null; ) {
        const from: string = after;
        const page = await inSlices(() => workspaces.list(agent, from, FILES_AT_ONCE));
        const names = page.map(({ name }) => name);
        const known = await inSlices(() => workspaces.taintedOf(agent, names));
        tainted.push(...new Set([...known, ...names.filter((name) => untrusted.has(name))]));
        for (const { name, updatedAt } of page) {
          listed.add(name);
          const content = await inSlices(() => contentOf(agent, name));
          if (content === null) {
            leftOut.add(WORKSPACE_PART + name);
            continue;
          }
          const range = { at: scratch.size() + bytes, size: content.byteLength };
          files.push({ name: WORKSPACE_PART + name, range, modifiedAtMs: updatedAt });
          waiting.push(content);
          bytes += content.byteLength;
          if (bytes >= WRITE_BYTES) await write();
        }
        after = page.length < FILES_AT_ONCE ? null : (names.at(-1) ?? null);
      }
      await write();
      await noteOthers(agent, listed);
    },

    async keepSkills(instanceId) {
      for (const { name, installedAt } of skills.list(instanceId, null, MAX_SKILLS)) {
        try {
          const skill = await inSlices(() => skills.read(instanceId, name));
          for (const [file, text] of skill.files) {
            const range = await scratch.append(await inSlices(() => Buffer.from(text)));
            files.push({ name: `${SKILLS_PART}${name}/${file}`, range, modifiedAtMs: installedAt });
          }
        } catch (error) {
          // It was removed just now, or is not what was installed.
          if (!(error instanceof AppError)) throw error;
          leftOut.add(SKILLS_PART + name);
        }
      }
    },

    async redact(redaction) {
      const clean: KeptFile[] = [];
      const own = files.flatMap(({ name }) => (name.startsWith(WORKSPACE_PART) ? [ownName(name)] : []));
      const names = await cleanNames(own, redaction);
      /** Null for a file of a skill that would be called otherwise: it would not be that skill. */
      async function nameOf({ name }: KeptFile): Promise<string | null> {
        if (!name.startsWith(WORKSPACE_PART)) return (await redaction.text(name)) === name ? name : null;
        const said = names.get(ownName(name)) ?? null;
        return said === null ? null : WORKSPACE_PART + said;
      }
      for (const kept of files) {
        const name = await nameOf(kept);
        const before = await scratch.read(kept.range);
        const after = await redaction.bytes(before);
        // A secret's name may be longer than its value: an import would refuse the whole bundle.
        if (name === null || after.byteLength > BUNDLE_BOUNDS.fileBytes) leftOut.add(kept.name);
        else clean.push({ ...kept, name, ...(after === before ? {} : { range: await scratch.append(after) }) });
      }
      files = clean;
      tainted = tainted.flatMap((name) => names.get(name) ?? []);
    },

    async keepSchedules(agentId, redaction) {
      const planned = schedules
        .page(agentId, null, BUNDLE_BOUNDS.schedules + 1)
        .filter(({ kind }) => kind === "schedule");
      for (const [index, schedule] of planned.entries()) {
        const name = `${SCHEDULES_PART}${String(index + 1).padStart(3, "0")}.json`;
        // Only what its owner wrote: a value such as "true" is also a part of how the file is written.
        const said = { name: await redaction.text(schedule.name), message: await redaction.text(schedule.message) };
        const range = await scratch.append(await inSlices(() => scheduleFile({ ...schedule, ...said })));
        files.push({ name, range, modifiedAtMs: schedule.updatedAt });
      }
    },

    async keepHistory(moment, redaction) {
      let left: number = BUNDLE_BOUNDS.historyBytes;
      for (const [index, conversation] of moment.conversations.entries()) {
        const at = scratch.size();
        const lineOf = createLineWriter();
        left -= (await scratch.append(Buffer.from(await headingOf(conversation, redaction)))).size;
        for (let after: number | null = 0; after !== null; ) {
          const from: number = after;
          const { rows, hasMore } = await inSlices(() => transfer.page(moment, conversation, from));
          const said: Message[] = [];
          for (const row of rows) said.push(await redactMessage(row, redaction));
          const lines = await inSlices(() => Buffer.from(said.map(lineOf).join("")));
          left -= (await scratch.append(lines)).size;
          if (left < 0) throw tooLong();
          after = hasMore ? (rows.at(-1)?.messageSeq ?? null) : null;
        }
        const range = { at, size: scratch.size() - at };
        const name = `${HISTORY_PART}${String(index + 1).padStart(4, "0")}.jsonl`;
        files.push({ name, range, modifiedAtMs: conversation.updatedAt });
      }
      if (!transfer.isWhole(moment)) {
        throw new AppError("conflict", "a conversation was cleared or deleted during the export; try again");
      }
    },
  };
}

const ownName = (name: string): string => name.slice(WORKSPACE_PART.length);

function ifForbidden(error: unknown): null {
  if (hasCode(error, "EACCES", "EPERM")) return null;
  throw error;
}

const tooLong = () =>
  new AppError(
    "conflict",
    `history: expected at most ${BUNDLE_BOUNDS.historyBytes} bytes of messages; export the agent without it, or delete conversations`,
  );
