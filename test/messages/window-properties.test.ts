import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { newId } from "../../src/lib/id.ts";
import { conversationQueries } from "../../src/messages/conversation-queries.ts";
import { NO_ORIGIN } from "../../src/messages/exchange.ts";
import { messageQueries } from "../../src/messages/queries.ts";
import { createCompacting } from "../../src/messages/runs/compacting.ts";
import { createHistory } from "../../src/messages/runs/history.ts";
import { stepQueries } from "../../src/messages/runs/past-steps.ts";
import { createWindows, type RecentMessages } from "../../src/messages/runs/window.ts";
import { createSummaries } from "../../src/messages/summaries.ts";
import {
  type MessagePart,
  type ModelAbilities,
  type ModelEvent,
  type ModelMessage,
  messagesIn,
} from "../../src/models/engine.ts";
import { seededRandom } from "../../src/models/local/sampling.ts";
import { compact } from "../../src/runtime/compaction.ts";
import { TURNS_TOGETHER } from "../../src/runtime/hosted-run.ts";
import { buildPrompt, messagesOf, toMessages } from "../../src/runtime/prompt.ts";
import type { RunInput, Turn } from "../../src/runtime/protocol.ts";
import { openStore, type Store } from "../../src/storage/store.ts";

let dataDir: string;
let store: Store;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-window-"));
  store = openStore(dataDir);
  store.sqlite.run("PRAGMA foreign_keys = OFF");
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true });
});

const AGENT = "agt_a";
const CONVERSATION = "conv_a";
const FRAME = {
  ...{ runId: "run_a", agentName: "Ada", files: [], skills: [], moreSkills: 0, readsSkills: false, journal: [] },
};

test("whatever is said, every message is shown, in the summary, or counted as left out in the prompt", async () => {
  const draw = seededRandom(4);
  const upTo = (most: number) => Math.floor(draw() * (most + 1));
  const queries = messageQueries(store.db);
  const steps = stepQueries(store.db);
  const summaries = createSummaries(store.db);
  const findConversation = conversationQueries(store.db).find;
  const windows = createWindows(queries, steps, () => "acct_a");
  const compacting = createCompacting({ clock: systemClock, queries, steps, summaries, findConversation });
  const history = createHistory({ windows, summaries, findConversation, compacting });
  store.transaction(() =>
    store.sqlite.run(
      `INSERT INTO conversations (conversation_id, agent_id, updated_at, created_at) VALUES ('${CONVERSATION}', '${AGENT}', 0, 0)`,
    ),
  );
  let said = 0;
  let summarised = 0;
  let leftOut = 0;
  const write = (role: "user" | "agent", runId: string, tainted: boolean): string => {
    const messageId = newId("msg");
    const text = `<${said++}> ${["a word ", "日本語", "слово "][upTo(2)]?.repeat(upTo(draw() < 0.1 ? 900 : 60))}`;
    const message = {
      ...{ messageId, agentId: AGENT, conversationId: CONVERSATION, runId, role, text, tainted, createdAt: 0 },
      ...{ senderType: "x", senderId: "x", senderName: "x", inReplyTo: null, finishReason: null },
      ...{ promptTokens: null, completionTokens: null, ...NO_ORIGIN },
    };
    queries.insertMessage(message);
    if (role === "agent" && draw() < 0.2) {
      const call = { id: "1", name: "now", input: "{}", result: { output: "noon ".repeat(upTo(200)), isError: false } };
      steps.add(message, [{ text: "", calls: [call] }]);
    }
    return messageId;
  };
  for (let round = 0; round < 300; round++) {
    const contextTokens = [2_048, 4_096, 8_192, 32_768][upTo(3)] ?? 2_048;
    const model: ModelAbilities = { contextTokens, tools: draw() < 0.5, prompt: "full" };
    const asked = store.transaction(() => {
      for (let pairs = upTo(6); pairs > 0; pairs--) {
        const runs = [newId("run"), newId("run")] as const;
        // Sometimes two messages wait, and are answered one after the other.
        if (draw() < 0.3) for (const run of runs) write("user", run, false);
        else write("user", runs[0], false);
        write("agent", runs[0], draw() < 0.02);
      }
      return write("user", "run_a", false);
    });
    const run = {
      ...{ runId: "run_a", agentId: AGENT, instanceId: "inst_a", conversationId: CONVERSATION, messageId: asked },
    };
    // What is kept is what would be read anew.
    const seqs = ({ turns, seen }: RecentMessages) => ({
      seen,
      sizes: [turns.tokens(false), turns.tokens(true)],
      turns: turns.all().map(({ messageSeq }) => messageSeq),
      parts: [0, Math.floor(turns.all().length / 2)].map((start) => {
        const { turnMessages, ...part } = turns.from(start, round % 2 === 0);
        return { ...part, messages: turnMessages.each };
      }),
    });
    const known = windows.read(run);
    const anew = createWindows(queries, steps, () => "acct_a").read(run);
    // Also of those after a message anywhere, as if a summary stood for the others.
    const newest = queries.message(asked)?.messageSeq ?? 0;
    for (const after of [0, upTo(newest - 1), newest - upTo(Math.min(20, newest))]) {
      expect(seqs(known(after))).toEqual(seqs(anew(after)));
    }
    // And each part of it what its turns are, one by one.
    const { turns } = known(0);
    const from = upTo(turns.all().length - 1);
    const rest = turns.all().slice(from);
    const withSteps = draw() < 0.5;
    const shown = anew(0).turns.from(from, withSteps).conversation;
    const { turnMessages, ...told } = turns.from(from, withSteps);
    expect(told).toEqual({
      conversation: shown,
      turnTokens: rest.map((turn) => (withSteps ? turn.tokensWithSteps : turn.tokens)),
      isTainted: rest.some(({ tainted }) => tainted),
    });
    // A message is made once, whatever part of the conversation later prompts show; beyond a window, not always.
    const made = new Set(turns.from(0, withSteps).turnMessages.each);
    const later = known(rest[0]?.messageSeq ?? 0).turns.from(0, withSteps).turnMessages;
    if (said <= 1_000) for (const message of later.each) expect(made.has(message)).toBe(true);
    const { each, together, first } = turnMessages;
    for (const [at, part] of each.entries()) {
      if (part) expect(messagesIn([part])).toEqual(messagesOf(shown[at] as Turn));
    }
    for (const [at, several] of together.entries()) {
      const start = first + at * TURNS_TOGETHER;
      expect(several).toEqual(messagesIn(each.slice(start, start + TURNS_TOGETHER) as MessagePart[]) as ModelMessage[]);
    }
    const room = Math.floor(contextTokens * (0.3 + draw() / 2));
    const { compaction, isTainted, ...part } = history(run, room, model);
    let input: RunInput = { ...FRAME, model, ...part, ...(compaction && { compaction: compaction.input }) };
    const fails = draw() < 0.3;
    const answer = async function* (_: ModelMessage[]): AsyncGenerator<ModelEvent[]> {
      yield [{ type: "text", text: fails ? "" : "They talked." }];
      yield [{ type: "finish", reason: "stop" }];
    };
    const work = compact(input, { streamModel: answer, signal: new AbortController().signal, onFault() {} });
    let next = await work.next();
    for (; !next.done; next = await work.next()) {
      const event = next.value;
      if (event.type === "compacted" || event.type === "compaction.failed") {
        const told = store.transaction(() => compaction?.settle(event));
        expect(told?.type).toBe(event.type === "compacted" ? "context.compacted" : "context.compaction_failed");
      }
    }
    input = next.value;
    const prompt = buildPrompt(input);
    const covered = input.summary?.messages ?? 0;
    // The messages not in the summary: those left out come first, then those shown, to the last.
    const all = store.sqlite
      .query<{ text: string; tainted: number; role: string; run_id: string; message_seq: number }, []>(
        "SELECT text, tainted, role, run_id, message_seq FROM messages ORDER BY message_seq",
      )
      .all();
    expect(covered + input.earlier + input.conversation.length).toBe(all.length);
    const content = toMessages(prompt)[0]?.content ?? "";
    if (input.earlier > 0) expect(content).toContain(`${input.earlier} `);
    if (input.earlier > 0) expect(content).toMatch(/not shown\.\)|nor in the summary\.\)/);
    if (covered > 0) expect(content).toContain(`Summary of ${covered} earlier messages`);
    // None twice, and none that the summary stands for.
    const numbers = input.conversation.map(({ text }) => Number(/^<(\d+)>/.exec(text)?.[1]));
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(covered);
    // What is tainted stays so, in the summary and in whoever reads it.
    const before = all.slice(0, covered).some(({ tainted }) => tainted === 1);
    if (before) expect(input.summary?.isTainted).toBe(true);
    if (before) expect(isTainted).toBe(true);
    if (covered > 0) summarised++;
    if (input.earlier > 0) leftOut++;
  }
  expect(summarised).toBeGreaterThan(50);
  expect(leftOut).toBeGreaterThan(20);
});
