import type { Instances } from "../instances/instances.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import { createFairCache } from "../lib/fair-cache.ts";
import type { Host } from "../runtime/host.ts";
import type { Store } from "../storage/store.ts";
import type { Whose, WorkspacePort } from "../tools/ports.ts";
import type { ToolContext } from "../tools/tool.ts";
import type { Written } from "./agent-change.ts";
import type { Agents, FoundAgent } from "./agents.ts";
import { isKeptOutput, type OutputPort } from "./kept-outputs.ts";
import type { Preconditions } from "./preconditions.ts";
import type { IndexedFile } from "./workspace-files.ts";
import type { Workspaces } from "./workspaces.ts";

export interface AgentFilesParts {
  store: Store;
  instances: Pick<Instances, "find">;
  agents: Pick<Agents, "find" | "writeFile" | "deleteFile">;
  workspaces: Workspaces;
  spend: Host["spend"];
  /** Keeps who wrote what, in the transaction in which it is written. */
  noteWrite?(context: ToolContext, name: string, file: IndexedFile, before: Uint8Array | null, after: Uint8Array): void;
}

/** Only where there is no such file. */
const NEW: Preconditions = { ifMatch: null, ifNoneMatch: "*" };
const ANY: Preconditions = { ifMatch: null, ifNoneMatch: null };
/** How often an edit is made anew because the file was changed meanwhile. */
const MAX_EDITS = 5;
/** Files that runs have read, whose versions are remembered; one that is forgotten has to be read again. */
const MAX_SEEN = 20_000;
const MAX_SEEN_OF_ONE = 2_000;

/**
 * The workspace as an agent's tools use it. Its changes go the way of a person's: with the same checks and quotas, whole
 * or not at all, and nothing of what somebody else has written meanwhile is lost.
 */
export function createAgentFiles(parts: AgentFilesParts): WorkspacePort & OutputPort {
  const { store, instances, agents, workspaces, spend, noteWrite } = parts;
  /** The versions of files as runs have read or written them last. */
  const seen = createFairCache<string>(MAX_SEEN, MAX_SEEN_OF_ONE);
  const seenBy = ({ runId }: Whose, name: string) => `${runId} ${name}`;
  const accountOf = ({ instanceId }: Whose) => instances.find(instanceId)?.accountId;
  const noteSeen = (whose: Whose, name: string, etag: string) =>
    seen.set(accountOf(whose) ?? "", seenBy(whose, name), etag);

  const finding =
    ({ instanceId, agentId }: Whose) =>
    (): FoundAgent => {
      const instance = instances.find(instanceId);
      const agent = agents.find(agentId);
      if (!instance || agent?.instanceId !== instanceId) throw notFound("agent");
      return { instance, agent };
    };
  /** A cancelled run changes nothing any longer. */
  const committing = (context: ToolContext, find: () => FoundAgent) => {
    return <Result>(operate: (found: FoundAgent) => Result): Promise<Result> => {
      const change = () => {
        context.signal.throwIfAborted();
        return operate(find());
      };
      return store.commitSoon(() => spend(context.instanceId, change), "full", accountOf(context));
    };
  };

  function existing(whose: Whose, name: string) {
    const { agent } = finding(whose)();
    const { bytes, etag } = workspaces.read(agent, name);
    return { bytes, etag, isTainted: workspaces.taintedOf(agent, [name]).length > 0 };
  }

  async function put(context: ToolContext, name: string, bytes: Uint8Array, condition: Preconditions) {
    const find = finding(context);
    const commit = committing(context, find);
    const writing = async (operate: (found: FoundAgent) => Written): Promise<Written> => {
      // It is this agent's turn to write, so the file stays as it is until the commit, which others wait for.
      const { agent } = find();
      const before = noteWrite && workspaces.isThere(agent, name) ? workspaces.read(agent, name).bytes : null;
      return commit((found) => {
        const written = operate(found);
        noteWrite?.(context, written.file.name, written.file, before, bytes);
        return written;
      });
    };
    const { created, etag } = await agents.writeFile(find, name, bytes, condition, writing, context.isTainted);
    noteSeen(context, name, etag);
    return { created };
  }

  function versionOf(whose: Whose, name: string): string | null {
    const { agent } = finding(whose)();
    return workspaces.isThere(agent, name) ? workspaces.read(agent, name).etag : null;
  }

  return {
    async list(whose, folder, limit) {
      const { agent } = finding(whose)();
      const known = workspaces.reindexing.ready([agent]);
      if (known !== null) await known;
      workspaces.refresh(agent);
      const files = folder === null ? workspaces.list(agent, "", limit) : workspaces.listWithin(agent, folder, limit);
      const chosen = files.map(({ name }) => name).filter((name) => !isKeptOutput(name));
      const strange = new Set(workspaces.taintedOf(agent, chosen));
      return files.map(({ name, size }) => ({ name, size, isTainted: strange.has(name) }));
    },
    versionOf,
    read(whose, name) {
      const { bytes, etag, isTainted } = existing(whose, name);
      noteSeen(whose, name, etag);
      return { bytes, isTainted };
    },
    async write(context, name, text) {
      if (isKeptOutput(name)) {
        throw new AppError("invalid_request", `${name}: the host gives names of this form: choose another`);
      }
      const bytes = Buffer.from(text);
      const known = seen.get(seenBy(context, name));
      if (known !== undefined) {
        return await explained(name, () => put(context, name, bytes, { ifMatch: known, ifNoneMatch: null }));
      }
      return await explained(name, () => put(context, name, bytes, asApproved(context) ?? NEW));
    },
    keep: (context, name, text) => put(context, name, Buffer.from(text), NEW),
    async edit(context, name, change) {
      for (let tried = 1; ; tried++) {
        const { bytes, etag, isTainted } = existing(context, name);
        const changed = change(bytes);
        const by = { ...context, isTainted: context.isTainted || isTainted };
        try {
          await put(by, name, changed, { ifMatch: etag, ifNoneMatch: null });
          return;
        } catch (error) {
          if (!isChanged(error) || tried === MAX_EDITS) throw error;
        }
      }
    },
    async remove(context, name) {
      const find = finding(context);
      const known = seen.get(seenBy(context, name));
      await explained(name, () => {
        const condition = known === undefined ? asApproved(context) : { ifMatch: known, ifNoneMatch: null };
        return agents.deleteFile(find, name, condition ?? ANY, committing(context, find));
      });
      seen.delete(seenBy(context, name));
    },
  };
}

/**
 * The file as it was when a person was asked about this call, since a host that was restarted has forgotten what the run had
 * read. Null where nobody was asked.
 */
const asApproved = ({ basis }: ToolContext): Preconditions | null =>
  basis === undefined ? null : basis === null ? NEW : { ifMatch: basis, ifNoneMatch: null };

const isChanged = (error: unknown): boolean => error instanceof AppError && error.code === "precondition_failed";

/** In words for a model, which knows no headers. */
async function explained<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isChanged(error)) throw error;
    throw new Error(`${name} is not as you read it last: read it with read_file, so that nothing in it is lost`);
  }
}
