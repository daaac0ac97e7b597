import { QUEUED } from "../memory/schema.ts";
import { TEXT_EVENTS } from "../messages/events/event-reader.ts";
import { isUnfinished, RUN_STATUSES } from "../messages/schema.ts";
import { type ClearingPlan, type ClearingStep, clearRows, type RowsOf } from "../storage/removals.ts";
import type { Store } from "../storage/store.ts";
import type { Features } from "./features.ts";

const markOf = (mark: string) => `(SELECT ${mark} FROM conversations WHERE conversation_id = ?1)`;
const CLEARED_MESSAGES = `message_seq <= ${markOf("cleared_message_seq")}`;
const CLEARED_RUNS = `first_event_id <= ${markOf("cleared_event_id")}`;
const CLEARED_EVENTS = `event_id <= ${markOf("cleared_event_id")}`;

/** Everything that belongs to an instance, an agent or a conversation, in the order in which it is cleared. */
export function clearingPlan(
  store: Store,
  { workspaces, conversations, memory }: Pick<Features, "workspaces" | "conversations" | "memory">,
): ClearingPlan {
  const { sqlite } = store;
  const rows = (of: RowsOf, last?: (id: string) => void): ClearingStep => ({ rows: clearRows(store, of, last) });
  const messages: RowsOf = { table: "messages", by: "conversation_id", key: "message_seq", before: -1, batch: 100 };
  /** One status at a time, in the order of the indexes. */
  const runs = (only: string): ClearingStep[] =>
    RUN_STATUSES.map((status) =>
      rows({
        table: "runs",
        by: "conversation_id",
        key: "first_event_id",
        before: -1,
        batch: 250,
        only: `status = '${status}'${isUnfinished({ status }) ? ` AND agent_id = ${markOf("agent_id")}` : ""} AND ${only}`,
      }),
    );
  const told: RowsOf = { table: "events", by: "conversation_id", key: "event_id", before: -1, batch: 250 };
  // In the words of their index.
  const ofOther = `conversation_id <> replace(agent_id, 'agt_', 'conv_') AND type IN ${TEXT_EVENTS}`;
  const asked: RowsOf = { table: "approvals", by: "conversation_id", key: "approval_id", before: "", batch: 100 };
  const continued: RowsOf = { table: "responses", by: "conversation_id", key: "response_id", before: "", batch: 100 };
  const stepsOf: RowsOf = { table: "message_steps", by: "conversation_id", key: "message_id", before: "", batch: 100 };
  const summaries: RowsOf = { table: "summaries", by: "conversation_id", key: "to_seq", before: -1, batch: 8 };
  const forgotten: RowsOf = { table: "memory_forgotten", by: "conversation_id", key: "run_id", before: "", batch: 250 };
  const self = (table: string, key: string): RowsOf => ({ table, by: key, key, before: "", batch: 1 });

  /** Nothing is hidden any more, unless it was cleared again meanwhile. */
  const settle = (id: string) =>
    sqlite.run(
      `UPDATE conversations SET cleared_event_id = 0 WHERE conversation_id = ?1
       AND (SELECT count(*) FROM removals WHERE id = ?1) <= 1`,
      [id],
    );
  const instanceOf = (agentId: string) =>
    sqlite.query<{ id: string }, [string]>("SELECT instance_id AS id FROM agents WHERE agent_id = ?").get(agentId)?.id;
  const firstAgent = (instanceId: string) =>
    sqlite
      .query<{ id: string }, [string]>("SELECT agent_id AS id FROM agents WHERE instance_id = ? LIMIT 1")
      .get(instanceId)?.id ?? null;

  const firstConversation = (agentId: string) =>
    sqlite
      .query<{ id: string }, [string]>("SELECT conversation_id AS id FROM conversations WHERE agent_id = ? LIMIT 1")
      .get(agentId)?.id ?? null;

  /** The events of a default conversation are found among all of its agent's; they go with it, if not before. */
  function* clearDefault(id: string): Generator<undefined, undefined> {
    const { after = 0, end = 0 } =
      sqlite
        .query<{ after: number; end: number }, [string]>(
          `SELECT pruned_event_id AS after, cleared_event_id AS end FROM conversations JOIN agents USING (agent_id)
           WHERE conversation_id = ? AND is_default = 1`,
        )
        .get(id) ?? {};
    for (let from = after; from < end; from += told.batch) {
      sqlite
        .query(
          `DELETE FROM events WHERE agent_id = (SELECT agent_id FROM conversations WHERE conversation_id = ?1)
           AND event_id > ?2 AND event_id <= ?3 AND conversation_id = ?1 AND type IN ${TEXT_EVENTS}`,
        )
        .run(id, from, Math.min(end, from + told.batch));
      yield;
    }
  }

  return {
    history: [
      rows({ ...messages, only: CLEARED_MESSAGES }),
      rows({ ...forgotten, only: `up_to <= ${markOf("cleared_message_seq")}` }),
      ...runs(CLEARED_RUNS),
      rows({
        ...continued,
        only: "NOT EXISTS (SELECT 1 FROM messages WHERE messages.message_id = responses.message_id)",
      }),
      rows({ ...asked, only: "NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = approvals.run_id)" }),
      { rows: clearDefault },
      rows({ ...told, only: `${CLEARED_EVENTS} AND ${ofOther}` }, settle),
    ],
    conversation: [
      rows(continued),
      rows(summaries),
      rows(stepsOf),
      rows(messages),
      ...runs("TRUE"),
      rows(asked),
      rows(forgotten),
      rows({ ...told, only: ofOther }),
      rows(self("conversations", "conversation_id")),
    ],
    agent: [
      { files: (agentId) => workspaces.clearTrash(instanceOf(agentId) ?? agentId) },
      { each: "conversation", first: firstConversation },
      rows({ table: "events", by: "agent_id", key: "event_id", before: -1, batch: 250 }),
      rows({ table: "schedules", by: "agent_id", key: "schedule_id", before: "", batch: 10 }),
      rows({ table: "approval_rules", by: "agent_id", key: "rule_id", before: "", batch: 250 }),
      rows({ table: "workspace_files", by: "agent_id", key: "name", before: "", batch: 250 }),
      rows({ table: "memory_notes", by: "agent_id", key: "note_id", before: -1, batch: 250 }),
      rows({ table: "memory_files", by: "agent_id", key: "name", before: "", batch: 250 }),
      ...QUEUED.map((kind) =>
        rows({
          table: "memory_queue",
          by: "agent_id",
          key: "source",
          before: "",
          batch: 250,
          only: `kind = '${kind}'`,
        }),
      ),
      rows({ table: "memory_vectors_due", by: "agent_id", key: "account_id", before: "", batch: 1 }),
      { files: memory.clear },
      rows(self("agents", "agent_id")),
    ],
    instance: [
      { rows: conversations.aftermath.beforeClearing },
      { files: workspaces.clearInstanceFolder },
      { each: "agent", first: firstAgent },
      rows({ table: "installed_skills", by: "instance_id", key: "name", before: "", batch: 5 }),
      rows({ table: "secrets", by: "instance_id", key: "key", before: "", batch: 25 }),
      rows({ table: "mcp_servers", by: "instance_id", key: "name", before: "", batch: 2 }),
      rows({ table: "workspace_changes", by: "instance_id", key: "change_id", before: "", batch: 100 }),
      rows(self("instances", "instance_id")),
    ],
    trash: [{ files: workspaces.clearTrash }],
  };
}
