/** An answer in which the model may call a function. The call always fits the function's schema, and ends the answer. */
import type { ToolDescription } from "../engine.ts";
import { callIn, partsOfCall, watchForCall } from "./call-grammar.ts";
import { createConstrainedGeneration } from "./constrained-generation.ts";
import { feed, type Generation, type GenerationOptions, type Turn } from "./generation.ts";
import { createGrammar, either, jsonOf } from "./json-grammar.ts";
import { chooseToken } from "./sampling.ts";
import { createTextStream } from "./text-stream.ts";

/** The model's own words, with or without a call after them. */
export function createCallingGeneration(
  options: GenerationOptions,
  opening: string,
  functions: readonly ToolDescription[],
): Generation {
  const { tokenizer, maxTokens } = options;
  const watch = watchForCall(opening, functions);
  const { grammar } = watch;
  const stream = createTextStream(options.stop);
  const written = new Set<number>();
  let count = 0;
  let last = 0;
  let calling: Generation | undefined;

  function beginCall(): void {
    const state = grammar.after(grammar.start, Buffer.from(watch.held)) ?? grammar.start;
    const generation = createConstrainedGeneration({ ...options, maxTokens: maxTokens - count }, grammar, {
      state,
      last,
    });
    calling = callOf(generation, watch.held);
  }

  async function takeTurnOfText(): Promise<Turn> {
    const logits = await feed(options, last);
    if (logits === null) return { text: "" };
    last = chooseToken(logits, written, options.sampling, options.random);
    if (tokenizer.ends.has(last)) return { text: watch.push(stream.end()) + watch.held, reason: "stop" };
    written.add(last);
    count++;
    const { text, stopped } = stream.push(tokenizer.bytesOf(last));
    const shown = watch.push(text);
    if (stopped) return { text: shown + watch.held, reason: "stop" };
    if (count === maxTokens) return { text: shown + watch.push(stream.end()) + watch.held, reason: "length" };
    if (watch.isCall()) beginCall();
    return { text: shown };
  }

  return {
    completionTokens: () => count + (calling?.completionTokens() ?? 0),
    takeTurn: () => calling?.takeTurn() ?? takeTurnOfText(),
  };
}

/** A call of one of these functions, and nothing else. */
export function createCall(
  options: GenerationOptions,
  opening: string,
  functions: readonly ToolDescription[],
): Generation {
  return callOf(createConstrainedGeneration(options, createGrammar(partsOfCall([opening.trimEnd()], functions))));
}

/** What is written as a call, or the rest of one. */
function callOf(generation: Generation, begun = ""): Generation {
  let call = begun;
  return {
    completionTokens: generation.completionTokens,
    async takeTurn() {
      const { text, reason } = await generation.takeTurn();
      call += text;
      if (reason === "length") return { text: "", reason, isCallCut: true };
      if (reason !== "stop") return { text: "" };
      return { text: "", reason: "tool_calls", call: callIn(call) };
    },
  };
}

/** Whether the first character tells a call from JSON. */
export const isUnlikeJson = (opening: string): boolean => opening !== "" && !/^[-{["\dtfn]/.test(opening);

/** JSON of the schema, or a call: what the model would rather write. The opening is unlike JSON. */
export function createOutputOrCall(
  options: GenerationOptions,
  opening: string,
  functions: readonly ToolDescription[],
  schema: Record<string, unknown>,
): Generation {
  const call = partsOfCall([opening.trimEnd()], functions);
  const generation = createConstrainedGeneration(options, createGrammar([either(() => [call, [jsonOf(schema)]])]));
  let calling: Generation | undefined;
  let isBegun = false;
  return {
    completionTokens: generation.completionTokens,
    async takeTurn() {
      if (calling !== undefined) return calling.takeTurn();
      const turn = await generation.takeTurn();
      if (isBegun || turn.text === "") return turn;
      isBegun = true;
      if (turn.text[0] !== opening[0]) return turn;
      calling = callOf(generation, turn.text);
      return { text: "" };
    },
  };
}
