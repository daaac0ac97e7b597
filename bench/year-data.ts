import { Database } from "bun:sqlite";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { defaultConversationOf } from "../src/messages/schema.ts";

/** How much an agent and its neighbours have said in the last year. */
export interface Year {
  /** Questions, each with its run and its answer. */
  exchanges: number;
  /** Agents of other accounts beside the given one, which has a quarter of it all if there are any. */
  neighbours: number;
  /** Of each agent, the newest runs whose events are kept, eight for each. */
  runsWithEvents: number;
}

const DAY_MS = 86_400_000;
const NEIGHBOURS_OF_ACCOUNT = 8;
const EVENTS = [
  ["run.queued", "{}"],
  ["run.started", "{}"],
  ["message.delta", '{"delta":"You asked about this before: "}'],
  ["message.delta", '{"delta":"the answer is the same, "}'],
  ["message.delta", '{"delta":"and it has been for a year, "}'],
  ["message.delta", '{"delta":"day by day."}'],
  ["message.completed", '{"message":{"message":"You asked about this before."}}'],
  ["run.completed", "{}"],
] as const;
const QUESTION = "What did we decide about this, and who was to write it down?";
const ANSWER = "You asked about this before: the answer is the same, and it has been for a year, day by day.";

const HELD_BACK = ["messages", "runs", "events"];

/**
 * Fills a stopped host's database with a year, through its own schema: as many rows, sums and marks as if the host had
 * written them. Its indexes and triggers are put aside meanwhile, since they would take an hour.
 */
export function fillYear(dataDir: string, agentId: string, year: Year): void {
  const path = join(dataDir, "roost.db");
  const copy = `${path}.filled`;
  // A copy, because other connections of this process may still hold the file.
  using before = new Database(path, { readonly: true });
  before.run("VACUUM INTO ?", [copy]);
  fill(copy, agentId, year);
  for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true });
  renameSync(copy, path);
}

function fill(path: string, agentId: string, year: Year): void {
  using sqlite = new Database(path, { strict: true });
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF", "cache_size = -400000", "foreign_keys = OFF"])
    sqlite.run(`PRAGMA ${pragma}`);
  const aside = sqlite
    .query<{ type: string; name: string; sql: string }, string[]>(
      `SELECT type, name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL
       AND tbl_name IN (${HELD_BACK.map(() => "?").join()})`,
    )
    .all(...HELD_BACK);
  sqlite.run("BEGIN");
  for (const { type, name } of aside) sqlite.run(`DROP ${type} ${name}`);
  addAgents(sqlite, agentId, year);
  addExchanges(sqlite, year);
  addUsage(sqlite);
  countThem(sqlite);
  for (const { sql } of aside) sqlite.run(sql);
  sqlite.run("COMMIT");
}

/** In `temp.slots`: the given agent in place 0, and its neighbours. */
function addAgents(sqlite: Database, agentId: string, { neighbours }: Year): void {
  sqlite.run(
    "CREATE TEMP TABLE slots (slot INTEGER PRIMARY KEY, agent_id TEXT, instance_id TEXT, conversation_id TEXT)",
  );
  sqlite.run("INSERT INTO slots SELECT 0, agent_id, instance_id, ? FROM agents WHERE agent_id = ?", [
    defaultConversationOf(agentId),
    agentId,
  ]);
  const now = Date.now();
  for (let slot = 1; slot <= neighbours; slot++) {
    const number = slot.toString(16).padStart(32, "0");
    const place = Math.ceil(slot / NEIGHBOURS_OF_ACCOUNT);
    const [account, instance] = [`acct_${String(place).padStart(32, "0")}`, `inst_${String(place).padStart(32, "0")}`];
    if (slot % NEIGHBOURS_OF_ACCOUNT === 1) {
      sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES (?, ?, 'N', ?)", [
        account,
        `n${place}@example.com`,
        now,
      ]);
      sqlite.run("INSERT INTO balances (account_id, balance) VALUES (?, 0)", [account]);
      sqlite.run(
        "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES (?, ?, 'n', 'stopped', ?)",
        [instance, account, now],
      );
      sqlite.run("INSERT INTO meters VALUES (?, ?, 0, 0, 0, 0)", [instance, account]);
    }
    sqlite.run(
      `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, indexed_at, created_at, updated_at)
       VALUES (?, ?, 'n', ?, 'n', ?, ?, ?)`,
      [`agt_${number}`, instance, `n${slot}`, now, now, now],
    );
    sqlite.run("INSERT INTO slots VALUES (?, ?, ?, ?)", [slot, `agt_${number}`, instance, `conv_${number}`]);
  }
}

function addExchanges(sqlite: Database, { exchanges, neighbours, runsWithEvents }: Year): void {
  const step = Math.floor((365 * DAY_MS) / exchanges);
  const start = Date.now() - 365 * DAY_MS;
  // `run` counts an agent's own exchanges; `at` is the time.
  sqlite.run(`CREATE TEMP TABLE said (slot INTEGER, run INTEGER, at INTEGER, id TEXT)`);
  const slot = neighbours === 0 ? "0" : `iif(n % 4 = 0, 0, 1 + n % ${neighbours})`;
  sqlite.run(`
    WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ${exchanges}),
      placed AS (SELECT ${slot} AS slot, n FROM numbers)
    INSERT INTO said SELECT slot, row_number() OVER (PARTITION BY slot ORDER BY n) - 1, ${start} + n * ${step},
      printf('%012x7%03x8%015x', ${start} + n * ${step}, slot, n) FROM placed ORDER BY n`);
  sqlite.run(`
    INSERT INTO runs (run_id, agent_id, instance_id, conversation_id, message_id, status, model, steps, prompt_tokens,
      completion_tokens, first_event_id, created_at, started_at, finished_at)
    SELECT 'run_' || id, agent_id, instance_id, conversation_id, 'msg_' || id, 'completed', 'openai:mock', 1, 900, 24,
      run * ${EVENTS.length} + 1, at, at, at + 2 FROM said CROSS JOIN slots USING (slot) ORDER BY said.rowid`);
  // The answer's id differs from the question's in its last place but one.
  sqlite.run(
    `INSERT INTO messages (message_id, agent_id, conversation_id, run_id, role, text, sender_type, sender_id, sender_name,
      in_reply_to, finish_reason, prompt_tokens, completion_tokens, created_at)
    SELECT iif(answers, 'msg_' || substr(id, 1, 16) || '9' || substr(id, 18), 'msg_' || id), agent_id, conversation_id,
      'run_' || id, iif(answers, 'agent', 'user'), iif(answers, ?, ?), iif(answers, 'agent', 'human'), agent_id, 'x',
      iif(answers, 'msg_' || id, NULL), iif(answers, 'stop', NULL), iif(answers, 900, NULL), iif(answers, 24, NULL),
      at + answers * 2
    FROM said CROSS JOIN slots USING (slot) CROSS JOIN (SELECT 0 AS answers UNION ALL SELECT 1)
    ORDER BY said.rowid`,
    [ANSWER, QUESTION],
  );
  // Events are of the last six days, whenever their runs were.
  sqlite.run("CREATE TEMP TABLE kinds (place INTEGER PRIMARY KEY, type TEXT, data TEXT)");
  EVENTS.forEach(([type, data], place) => void sqlite.run("INSERT INTO kinds VALUES (?, ?, ?)", [place, type, data]));
  sqlite.run("CREATE TEMP TABLE lasts AS SELECT slot, max(run) AS last FROM said GROUP BY slot");
  sqlite.run(`
    INSERT INTO events SELECT agent_id, run * ${EVENTS.length} + place + 1, 'run_' || id, conversation_id, type, data,
      ${Date.now() - 6 * DAY_MS} + (${runsWithEvents} - last + run)
    FROM said CROSS JOIN lasts USING (slot) CROSS JOIN slots USING (slot) CROSS JOIN kinds
    WHERE run > last - ${runsWithEvents} ORDER BY said.rowid, place`);
}

/** What models took, day by day. */
function addUsage(sqlite: Database): void {
  sqlite.run(`
    INSERT INTO model_usage
    WITH days AS (SELECT slot, date(at / 1000, 'unixepoch') AS day, count(*) AS calls FROM said GROUP BY slot, day),
      named AS (SELECT account_id, instance_id, agent_id, day, calls FROM days CROSS JOIN slots USING (slot)
        CROSS JOIN instances USING (instance_id)),
      kinds (kind) AS (VALUES ('agent'), ('instance'), ('model'), ('day'), ('host'))
    SELECT account_id, kind,
      CASE kind WHEN 'agent' THEN agent_id WHEN 'instance' THEN instance_id WHEN 'model' THEN 'openai:mock' ELSE '' END AS name,
      day, sum(calls), sum(calls), 900 * sum(calls), 0, 24 * sum(calls), NULL
    FROM named CROSS JOIN kinds GROUP BY account_id, kind, name, day`);
}

/** What triggers keep. */
function countThem(sqlite: Database): void {
  sqlite.run(`CREATE TEMP TABLE sums AS SELECT agent_id, conversation_id, count(*) AS messages, max(created_at) AS last,
    sum(512 + octet_length(text) + octet_length(sender_type) + octet_length(sender_id) + octet_length(sender_name)) AS bytes
    FROM messages GROUP BY agent_id, conversation_id`);
  sqlite.run(`UPDATE conversations SET message_count = messages, updated_at = last FROM sums
    WHERE sums.conversation_id = conversations.conversation_id`);
  sqlite.run(`UPDATE account_usage SET history_bytes = bytes FROM (
      SELECT account_id, sum(bytes) AS bytes FROM sums JOIN agents USING (agent_id) JOIN instances USING (instance_id)
      GROUP BY account_id
    ) AS held WHERE held.account_id = account_usage.account_id`);
  sqlite.run(`UPDATE agents SET last_event_id = last, pruned_event_id = first - 1, event_bytes = bytes FROM (
      SELECT agent_id, max(event_id) AS last, min(event_id) AS first, sum(128 + octet_length(data)) AS bytes
      FROM events GROUP BY agent_id
    ) AS log WHERE log.agent_id = agents.agent_id`);
}
