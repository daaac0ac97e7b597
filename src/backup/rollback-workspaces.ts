import { Database } from "bun:sqlite";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { newId } from "../lib/id.ts";
import { stageMove, type WorkspaceTarget } from "../workspace/workspace-change.ts";
import { agentsIn } from "./agents.ts";

/** What becomes of the workspaces when the database is replaced by an older one. */
export interface Moves {
  /** The folders of instances and agents that the older one does not know, relative to the data folder. */
  unknown: string[];
  /** To be carried out in this order: agents go where the older one has them. */
  changes: { instanceId: string; target: WorkspaceTarget }[];
}

export function movesBetween(dataDir: string, newer: Database, older: Database): Moves {
  const before = new Map(agentsIn(older).map((agent) => [agent.agentId, agent]));
  const slugsBefore = new Set([...before.values()].map(placeOf));
  const idsNow = new Map(agentsIn(newer).map((agent) => [placeOf(agent), agent.agentId]));
  const isInstance = older.query("SELECT 1 FROM instances WHERE instance_id = ?");
  const moves: Moves = { unknown: [], changes: [] };
  for (const instanceId of namesIn(join(dataDir, "instances"))) {
    const instance = join("instances", instanceId);
    if (isInstance.get(instanceId) === null) {
      moves.unknown.push(instance);
      continue;
    }
    const renamed: { from: string; to: string }[] = [];
    const taken: string[] = [];
    for (const slug of namesIn(join(dataDir, instance, "agents"))) {
      const place = placeOf({ instanceId, slug });
      const agent = before.get(idsNow.get(place) ?? "");
      if (agent === undefined) {
        moves.unknown.push(join(instance, "agents", slug));
        if (slugsBefore.has(place)) taken.push(slug);
      } else if (agent.slug !== slug) renamed.push({ from: slug, to: agent.slug });
    }
    const targets = [...taken.map((slug) => ({ kind: "remove", slug }) as const), ...renames(renamed)];
    moves.changes.push(...targets.map((target) => ({ instanceId, target })));
  }
  return moves;
}

const placeOf = ({ instanceId, slug }: { instanceId: string; slug: string }): string => `${instanceId}/${slug}`;

/** All of them leave their places before the first takes another's: agents may have exchanged their slugs. */
function renames(pairs: readonly { from: string; to: string }[]): WorkspaceTarget[] {
  const steps = pairs.map(({ from, to }) => ({ from, between: `rollback-${randomUUID()}`, to }));
  return [
    ...steps.map(({ from, between }) => ({ kind: "rename", slug: between, from }) as const),
    ...steps.map(({ between, to }) => ({ kind: "rename", slug: to, from: between }) as const),
  ];
}

/**
 * Commits the changes in a copy of the older database: once that is in place, they are finished like all others, after a
 * crash by the next start. Every build can do that.
 */
export function stageMoves(dataDir: string, copy: string, changes: Moves["changes"]): void {
  if (changes.length === 0) return;
  using sqlite = new Database(copy, { readwrite: true });
  // A journal would be a file beside the copy, where another user may have put a link.
  sqlite.run("PRAGMA journal_mode = MEMORY");
  const insert = sqlite.query("INSERT INTO workspace_changes (change_id, instance_id) VALUES (?, ?)");
  sqlite.transaction(() => {
    for (const { instanceId, target } of changes) {
      const changeId = newId("change");
      stageMove(join(dataDir, "instances", instanceId), changeId, target);
      insert.run(changeId, instanceId);
    }
  })();
}

const namesIn = (folder: string): string[] => (fs.existsSync(folder) ? fs.readdirSync(folder) : []);
