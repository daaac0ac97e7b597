/** What agents did before they answered: the tools that they called, and what they returned, for later prompts. */
import { eq, sql } from "drizzle-orm";
import { cut } from "../../runtime/prompt-room.ts";
import type { JournalStep, MadeCall, PastStep, Turn } from "../../runtime/protocol.ts";
import { tokensOf, tokensOfCalls, tokensOfMessage } from "../../runtime/tokens.ts";
import { prepared } from "../../storage/prepared.ts";
import type { Db } from "../../storage/store.ts";
import { type Message, messageSteps } from "../schema.ts";

/** Characters of an input or a result. */
const MAX_TEXT = 4_000;
/** Of all steps before one answer. The results of the first give way. */
const MAX_STEPS_TEXT = 32_000;
const NO_RESULT = "[It has no result: the run ended before.]";

export type StepQueries = ReturnType<typeof stepQueries>;

export function stepQueries(db: Db) {
  const p = sql.placeholder;
  const insert = prepared(db, () =>
    db.insert(messageSteps).values({
      messageId: p("messageId"),
      agentId: p("agentId"),
      conversationId: p("conversationId"),
      steps: p("steps"),
      tokens: p("tokens"),
    }),
  );
  const find = prepared(db, () =>
    db
      .select({ steps: messageSteps.steps })
      .from(messageSteps)
      .where(eq(messageSteps.messageId, p("messageId"))),
  );
  return {
    /** Keeps the steps before an answer. Call it in a transaction. */
    add(
      { messageId, agentId, conversationId, runId }: Omit<Message, "messageSeq" | "tokens">,
      done: readonly JournalStep[],
    ) {
      const withCalls = done.filter(({ calls }) => calls.length > 0);
      const steps = shortened(withCalls.map((step, at) => asPast(step, `${runId.slice(-6)}_${at}`)));
      if (steps.length === 0) return;
      const tokens = steps.reduce(
        (sum, step) => sum + tokensOfMessage(tokensOf(step.text)) + tokensOfCalls(step.calls),
        0,
      );
      insert.run({ messageId, agentId, conversationId, steps, tokens });
    },
    /** The copy of an answer is shown with the same steps. */
    copy(messageId: string, to: { messageId: string; conversationId: string }) {
      db.run(sql`INSERT INTO message_steps SELECT ${to.messageId}, agent_id, ${to.conversationId}, steps, tokens
        FROM message_steps WHERE message_id = ${messageId}`);
    },
    /** The answer with its steps. Its text begins with what was said in them. */
    of(messageId: string, text: string): Turn {
      const steps = find.get({ messageId })?.steps ?? [];
      const said = steps.map((step) => step.text).join("");
      if (!text.startsWith(said))
        return { role: "assistant", text, steps: steps.map((step) => ({ ...step, text: "" })) };
      return { role: "assistant", text: text.slice(said.length).trimStart(), steps };
    },
  };
}

/** Servers number the calls of each answer anew; in a prompt with several, each call needs an id of its own. */
function asPast({ text, calls }: JournalStep, prefix: string): PastStep {
  const made = calls.map(
    ({ id, name, input, result }): MadeCall => ({
      call: { id: `${prefix}_${id}`.slice(0, 64), name, input: shortInput(input) },
      result: cut(result?.output ?? NO_RESULT, MAX_TEXT),
    }),
  );
  return { text, calls: made };
}

/** JSON that is cut is none. */
const shortInput = (input: string): string =>
  input.length <= MAX_TEXT ? input : JSON.stringify({ leftOut: `${input.length} characters` });

function shortened(steps: PastStep[]): PastStep[] {
  const calls = steps.flatMap((step) => step.calls);
  let size = calls.reduce((sum, { call, result }) => sum + call.input.length + result.length, 0);
  for (const made of calls) {
    if (size <= MAX_STEPS_TEXT) break;
    const note = `[This output is left out here: ${made.result.length} characters.]`;
    if (made.result.length <= note.length) continue;
    size -= made.result.length - note.length;
    made.result = note;
  }
  return steps;
}
