import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/lib/clock.ts";
import { newId } from "../src/lib/id.ts";
import { conversationQueries } from "../src/messages/conversation-queries.ts";
import { NO_ORIGIN } from "../src/messages/exchange.ts";
import { messageQueries } from "../src/messages/queries.ts";
import { createCompacting } from "../src/messages/runs/compacting.ts";
import { createHistory } from "../src/messages/runs/history.ts";
import { stepQueries } from "../src/messages/runs/past-steps.ts";
import { createWindows } from "../src/messages/runs/window.ts";
import { createSummaries } from "../src/messages/summaries.ts";
import type { ModelAbilities } from "../src/models/engine.ts";
import { buildPrompt, conversationRoom, type Frame, PROMPT_FILES, toMessages } from "../src/runtime/prompt.ts";
import { openStore } from "../src/storage/store.ts";
import { median, type Row } from "./figure.ts";

const TIMES = 60;
const GOAL_MS = 5;
const CONVERSATION = "conv_bench";

/** What it takes to put a prompt together: to choose a conversation's messages, and to write the messages of the call. */
export async function benchPrompts(): Promise<Row[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-bench-"));
  const store = openStore(dataDir);
  try {
    store.sqlite.run("PRAGMA foreign_keys = OFF");
    const queries = messageQueries(store.db);
    store.transaction(() => {
      const sql =
        "INSERT INTO conversations (conversation_id, agent_id, updated_at, created_at) VALUES (?, 'agt_a', 0, 0)";
      store.sqlite.run(sql, [CONVERSATION]);
      for (let at = 0; at < 1_000; at++) write(queries, at);
    });
    const { prompt, plan, forget } = createPrompts(store, queries);
    const large = { contextTokens: 262_144, tools: true, prompt: "full" } as const;
    const usual = { ...large, contextTokens: 32_768 };
    return [
      row("prompt of the newest of 1,000 messages, 32,768 tokens", () => prompt(usual)),
      row("prompt of 1,000 messages, 262,144 tokens", () => prompt(large)),
      row("the same, read from the database", () => {
        forget();
        return prompt(large);
      }),
      row("the plan of a summary, with 400,000 characters of old messages", () => plan(usual)),
    ];
  } finally {
    store.close();
    rmSync(dataDir, { recursive: true });
  }
}

type Queries = ReturnType<typeof messageQueries>;

const OF_AGENT = { agentId: "agt_a", instanceId: "inst_a", conversationId: CONVERSATION };

function write({ insertMessage }: Queries, at: number): void {
  const role = at % 2 === 0 ? "user" : "agent";
  insertMessage({
    ...{ messageId: newId("msg"), agentId: "agt_a", conversationId: CONVERSATION, role, tainted: false, createdAt: at },
    ...{ runId: `run_${at >> 1}`, senderType: "x", senderId: "x", senderName: "x", inReplyTo: null, ...NO_ORIGIN },
    ...{ finishReason: null, promptTokens: null, completionTokens: null },
    text: `Message ${at}: ${"we talked about the garden and the weather. ".repeat(9)}`,
  });
}

function createPrompts({ db }: ReturnType<typeof openStore>, queries: Queries) {
  const steps = stepQueries(db);
  const summaries = createSummaries(db);
  const findConversation = conversationQueries(db).find;
  const compacting = createCompacting({ clock: systemClock, queries, steps, summaries, findConversation });
  const windows = createWindows(queries, steps, () => "acct_a");
  const history = createHistory({ windows, summaries, findConversation, compacting });
  const files = PROMPT_FILES.map((name) => ({ name, text: "Be kind and brief. ".repeat(60) }));
  function prompt(model: ModelAbilities) {
    const frame: Frame = {
      ...{ runId: "", agentName: "Ada", files, skills: [], moreSkills: 0, readsSkills: false, journal: [], model },
    };
    const run = { ...OF_AGENT, runId: "", messageId: "" };
    const { compaction: _, isTainted: __, ...part } = history(run, conversationRoom(frame, []), model);
    return toMessages(buildPrompt({ ...frame, ...part }));
  }
  /** As in a run that answers the newest message. */
  function plan(model: ModelAbilities) {
    const [last] = queries.recent(CONVERSATION, 1);
    const run = { ...OF_AGENT, runId: last?.runId ?? "", messageId: last?.messageId ?? "" };
    const { compaction } = history(run, Math.floor(model.contextTokens * 0.7), model);
    return Array.from({ length: compaction?.input.messages ?? 0 });
  }
  return { prompt, plan, forget: () => windows.forget(CONVERSATION) };
}

function row(figure: string, work: () => unknown[]): Row {
  const times: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    const startedMs = performance.now();
    if (work().length < 100) throw new Error("the prompt does not hold the conversation");
    times.push(performance.now() - startedMs);
  }
  const value = median(times);
  return { figure, value, unit: "ms", goal: `≤ ${GOAL_MS} ms`, met: value <= GOAL_MS };
}
