import { TOLD } from "../messages/events/event-reader.ts";
import { type ClearingPlan, type ClearingStep, clearRows, type RowsOf } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { Features } from "./features.ts";

const CLEARED_MESSAGES = "message_seq <= (SELECT cleared_message_seq FROM agents WHERE agent_id = ?1)";
const CLEARED_RUNS = "first_event_id <= (SELECT cleared_event_id FROM agents WHERE agent_id = ?1)";
const CLEARED_EVENTS = `event_id <= (SELECT cleared_event_id FROM agents WHERE agent_id = ?1) AND type IN ${TOLD}`;

/** Everything that belongs to an instance, an agent or a conversation, in the order in which it is cleared. */
export function clearingPlan(
  store: Store,
  { workspaces, conversations }: Pick<Features, "workspaces" | "conversations">,
): ClearingPlan {
  const { sqlite } = store;
  const rows = (of: RowsOf, last?: (id: string) => void): ClearingStep => ({ rows: clearRows(store, of, last) });
  const messages: RowsOf = { table: "messages", by: "agent_id", key: "message_seq", before: -1, batch: 100 };
  const runs: RowsOf = { table: "runs", by: "agent_id", key: "rowid", before: -1, batch: 250 };
  const events: RowsOf = { table: "events", by: "agent_id", key: "event_id", before: -1, batch: 250 };
  const self = (table: string, key: string): RowsOf => ({ table, by: key, key, before: "", batch: 1 });

  /** A new message may reuse the number of the last one, and must not count as cleared. */
  const resetClearedSeq = (agentId: string) =>
    sqlite.run("UPDATE agents SET cleared_message_seq = 0 WHERE agent_id = ?", [agentId]);
  const instanceOf = (agentId: string) =>
    sqlite.query<{ id: string }, [string]>("SELECT instance_id AS id FROM agents WHERE agent_id = ?").get(agentId)?.id;
  const firstAgent = (instanceId: string) =>
    sqlite
      .query<{ id: string }, [string]>("SELECT agent_id AS id FROM agents WHERE instance_id = ? LIMIT 1")
      .get(instanceId)?.id ?? null;

  return {
    conversation: [
      rows({ ...messages, only: CLEARED_MESSAGES }, resetClearedSeq),
      rows({ ...runs, only: CLEARED_RUNS }),
      rows({ ...events, only: CLEARED_EVENTS }),
    ],
    agent: [
      { files: (agentId) => workspaces.clearTrash(instanceOf(agentId) ?? agentId) },
      rows(messages),
      rows(runs),
      rows(events),
      rows({ table: "workspace_files", by: "agent_id", key: "name", before: "", batch: 250 }),
      rows(self("agents", "agent_id")),
    ],
    instance: [
      { rows: conversations.aftermath.beforeClearing },
      { files: workspaces.clearInstanceFolder },
      { each: "agent", first: firstAgent },
      rows({ table: "installed_skills", by: "instance_id", key: "name", before: "", batch: 5 }),
      rows({ table: "secrets", by: "instance_id", key: "key", before: "", batch: 25 }),
      rows({ table: "workspace_changes", by: "instance_id", key: "change_id", before: "", batch: 100 }),
      rows(self("instances", "instance_id")),
    ],
    trash: [{ files: workspaces.clearTrash }],
  };
}
