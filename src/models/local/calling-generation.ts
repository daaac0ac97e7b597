/** An answer in which the model may call a function. The call always fits the function's schema, and ends the answer. */
import type { FinishReason, ToolDescription } from "../engine.ts";
import { type Reachable, watchBeginning } from "./announced-call.ts";
import { callIn, partsOfCall, watchForCall } from "./call-grammar.ts";
import { type ConstrainedGeneration, createConstrainedGeneration } from "./constrained-generation.ts";
import { feed, type Generation, type GenerationOptions, type Turn } from "./generation.ts";
import { createGrammar, either, type Grammar } from "./grammar.ts";
import { jsonOf } from "./json-grammar.ts";
import { chooseToken } from "./sampling.ts";
import { createTextStream } from "./text-stream.ts";

const NONE: Reachable = { announced: [], helping: [] };

/** The model's own words, with or without a call after them, or a call in their place. */
export function createCallingGeneration(
  options: GenerationOptions,
  opening: string,
  functions: readonly ToolDescription[],
  reachable: Reachable = NONE,
): Generation {
  const { prompt, slot, tokenizer, maxTokens } = options;
  const watch = watchForCall(opening, functions);
  const beginning = watchBeginning(reachable);
  const stream = createTextStream(options.stop);
  const written = new Set<number>();
  let count = 0;
  let last = 0;
  let calling: Generation | undefined;

  /** What is left of the grammar is written; `begun` of it is. */
  function beginCall(grammar: Grammar, begun = ""): Turn {
    const state = grammar.after(grammar.start, Buffer.from(begun)) ?? grammar.start;
    const left = { ...options, maxTokens: maxTokens - count };
    calling = callOf(createConstrainedGeneration(left, grammar, { state, last }), begun);
    return { text: "" };
  }

  /** In the place of what was written, none of which has been shown. */
  function beginInstead(names: readonly string[]): Turn {
    slot.tokens.length = Math.min(slot.tokens.length, prompt.length - 1);
    const named = functions.filter(({ name }) => names.includes(name));
    return beginCall(createGrammar(partsOfCall([opening.trimEnd()], named)));
  }

  function end(shown: string, reason: FinishReason): Turn {
    const text = shown + beginning.push(watch.push(stream.end()));
    const wanted = reason === "stop" && watch.held === "" ? beginning.wanted(true) : null;
    return wanted === null ? { text: text + beginning.held + watch.held, reason } : beginInstead(wanted);
  }

  async function takeTurnOfText(): Promise<Turn> {
    const logits = await feed(options, last);
    if (logits === null) return { text: "" };
    last = chooseToken(logits, written, options.sampling, options.random);
    if (tokenizer.ends.has(last)) return end("", "stop");
    written.add(last);
    count++;
    const { text, stopped } = stream.push(tokenizer.bytesOf(last));
    const shown = beginning.push(watch.push(text));
    if (stopped) return { text: shown + beginning.held + watch.held, reason: "stop" };
    if (count === maxTokens) return end(shown, "length");
    const wanted = beginning.wanted();
    if (wanted !== null) return beginInstead(wanted);
    return watch.isCall() ? { ...beginCall(watch.grammar, watch.held), text: shown + beginning.held } : { text: shown };
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

/**
 * What is written as a call, or the rest of one. A text of which a piece comes three times in a row would go on like this
 * until the length ends: it ends there, and has the piece once.
 */
function callOf(generation: ConstrainedGeneration, begun = ""): Generation {
  let call = begun;
  return {
    completionTokens: generation.completionTokens,
    async takeTurn() {
      const { text, reason } = await generation.takeTurn();
      call += text;
      if (reason === "length") return { text: "", reason, isCallCut: true };
      if (reason === "stop") return { text: "", reason: "tool_calls", call: callIn(call) };
      const loop = loopAtEnd(call);
      if (loop > 0) {
        call = call.slice(0, -2 * loop);
        generation.endText();
      }
      return { text: "" };
    },
  };
}

const LOOP = { shortest: 24, longest: 600 };

/** The length of the piece of a JSON text that it ends with three times in a row; 0 if there is none, or it is no words. */
function loopAtEnd(json: string): number {
  for (let length = LOOP.shortest; length <= LOOP.longest && 3 * length <= json.length; length++) {
    const piece = json.slice(-length);
    const isRepeated = [1, 2].every((times) => json.endsWith(piece, json.length - times * length));
    if (!isRepeated) continue;
    const isOfText = !/(?<!\\)"/.test(piece) && /\p{L}{3}/u.test(piece.replaceAll(/true|false|null/g, ""));
    return isOfText ? length : 0;
  }
  return 0;
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
