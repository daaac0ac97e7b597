/**
 * What helps a small model with its tools: the calls that a message plainly asks for, and words for their results.
 * Imported when a model that calls tools answers: its patterns take milliseconds to load, and a start has no time for them.
 */
import type { ModelEvent, ModelRequest } from "./engine.ts";
import { reachableFor } from "./local/announced-call.ts";
import type { Generate } from "./local/protocol.ts";
import { mustCall, shownFor } from "./local/tools/must-call.ts";
import { tell } from "./local/tools/tell.ts";
import { askedIn } from "./local/tools/tool-use.ts";

const NO_USAGE = { type: "usage", promptTokens: 0, completionTokens: 0 } as const;

/** The whole answer, for a message that only asks to be shown what a call already returned; undefined for others. */
export function shownAsAnswer(request: ModelRequest): ModelEvent[] | undefined {
  const shown = shownFor(request);
  return shown === undefined
    ? undefined
    : [{ type: "text", text: shown }, NO_USAGE, { type: "finish", reason: "stop" }];
}

/** Small models often say nothing once a tool has done what was asked: then its result is told in fixed words. */
export async function* withWords(
  answer: AsyncIterable<ModelEvent[]>,
  { messages }: Pick<ModelRequest, "messages">,
): AsyncGenerator<ModelEvent[], void> {
  let isEmpty = true;
  for await (const events of answer) {
    const finish = events.at(-1);
    isEmpty &&= !events.some(
      (event) => event.type === "tool_call" || (event.type === "text" && event.text.trim() !== ""),
    );
    if (isEmpty && finish?.type === "finish" && finish.reason === "stop") {
      const { question, made } = askedIn(messages);
      const last = made.at(-1);
      if (last !== undefined) yield [{ type: "text", text: tell(last, question) }];
    }
    yield events;
  }
}

export function functionsOf(request: ModelRequest): Pick<Generate, "functions" | "mustCall" | "reachable"> {
  const must = mustCall(request);
  return { functions: request.tools, ...(must ? { mustCall: must } : { reachable: reachableFor(request) }) };
}
