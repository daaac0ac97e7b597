import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { waitForOthers } from "../storage/connection.ts";
import { STAGING, TRASH, workspaceFolder } from "../workspace/workspace.ts";
import { recoverChanges, renamedFrom } from "../workspace/workspace-change.ts";
import { type AgentRow, agentsIn, standing } from "./agents.ts";
import type { ArchivedFile } from "./archive.ts";
import { filesBelow, folderAt, type SourceFolder } from "./files.ts";

/**
 * The files of the agents that the copy of the database has, where the copy has them: an agent may be renamed before its
 * turn comes, or during it. Calls `onEmptied` for each that is removed, or has no files any more, when its turn comes.
 */
export async function* filesOfWorkspaces(
  dataDir: string,
  copy: string,
  onEmptied: () => void,
): AsyncGenerator<ArchivedFile> {
  using then = new Database(copy, { readonly: true });
  using now = new Database(join(dataDir, "roost.db"), { readonly: true });
  waitForOthers(now);
  let instanceBefore = "";
  for (const agent of agentsIn(then)) {
    const { agentId, instanceId, slug } = agent;
    if (standing(then, agentId, instanceId) === null) continue;
    const name = join("instances", instanceId);
    // Changes on their way come first, since they end up in the agents' folders.
    if (instanceId !== instanceBefore) {
      yield* filesBelow(folderAt(join(dataDir, name, STAGING)), join(name, STAGING), (path) => !path.startsWith(TRASH));
    }
    instanceBefore = instanceId;
    let isEmpty = true;
    for await (const file of filesBelow(workspaceOf(dataDir, now, agent), join(name, "agents", slug))) {
      isEmpty = false;
      yield file;
    }
    if (isEmpty && standing(now, agentId, instanceId)?.hasFiles !== true) onEmptied();
  }
}

/** An agent's workspace, wherever it is at each moment. */
function workspaceOf(dataDir: string, now: Database, { agentId, instanceId }: AgentRow): SourceFolder {
  const instance = join(dataDir, "instances", instanceId);
  const changes = now.query<{ id: string }, [string]>(
    "SELECT change_id AS id FROM workspace_changes WHERE instance_id = ?",
  );

  /** Null if the agent is removed. */
  function find(): string | null {
    const agent = standing(now, agentId, instanceId);
    if (agent === null) return null;
    const folder = workspaceFolder(instance, agent.slug);
    if (existsSync(folder)) return folder;
    // A rename is committed before its folder moves: a moment before, or, after a crash, until the next start.
    const ids = changes.all(instanceId).map(({ id }) => id);
    return renamedFrom(instance, agent.slug, ids) ?? folder;
  }

  /** Looks there again if it was somewhere else by the end: another agent's may be there by then, or none. */
  async function inPlace<T>(none: T, look: (folder: SourceFolder) => Promise<T>, giveBack?: (found: T) => unknown) {
    for (let place = find(); place !== null; ) {
      const found = await look(folderAt(place));
      const after = find();
      if (after === place) return found;
      await giveBack?.(found);
      place = after;
    }
    return none;
  }

  return {
    entries: (path) => inPlace([], (folder) => folder.entries(path)),
    open: (path) => inPlace(null, (folder) => folder.open(path), closeFile),
  };
}

const closeFile = (file: FileHandle | null) => file?.close();

/** Finishes the changes of workspaces that are committed in the database, and discards others, as a start does. */
export function finishChanges(dataDir: string, sqlite: Database): void {
  const changes = sqlite
    .query<{ id: string; instanceId: string }, []>(
      "SELECT change_id AS id, instance_id AS instanceId FROM workspace_changes",
    )
    .all();
  for (const [instanceId, committed] of Map.groupBy(changes, (change) => change.instanceId)) {
    const ids = new Set(committed.map(({ id }) => id));
    recoverChanges(join(dataDir, "instances", instanceId), (id) => ids.has(id));
  }
}

/** How many agents have files in the database of a data folder, and none on disk, once its changes are finished. */
export function countEmptied(dataDir: string): number {
  using sqlite = new Database(join(dataDir, "roost.db"), { readonly: true });
  finishChanges(dataDir, sqlite);
  return agentsIn(sqlite).filter(
    ({ agentId, instanceId, slug }) =>
      standing(sqlite, agentId, instanceId)?.hasFiles === true &&
      !existsSync(workspaceFolder(join(dataDir, "instances", instanceId), slug)),
  ).length;
}
