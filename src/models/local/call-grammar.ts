/** How a model writes a call of a function: after its template's opening, JSON with a name and arguments. */
import type { ToolDescription } from "../engine.ts";
import { bytes, createGrammar, either, type Grammar, optional, type Part } from "./grammar.ts";
import { jsonOf } from "./json-grammar.ts";
import type { ToolRequest } from "./protocol.ts";

/** Of a text among the arguments, such as a file's. */
const MAX_TEXT = 16_000;
/** Small models use these as well, whatever their templates say. */
const OTHER_OPENINGS = ["<tool_call>", "<tools>", "<function_call>", "```json", "```", ""];
const MAX_GAP = 8;

/** White space, as in JSON on several lines. */
const gap = (most = MAX_GAP): Part =>
  either(() => [[], ...(most === 0 ? [] : [" ", "\n"].map((one) => [bytes(one), gap(most - 1)]))]);

export function partsOfCall(openings: readonly string[], functions: readonly ToolDescription[]): Part[] {
  const calls = functions.map(({ name, inputSchema }) => [
    bytes(JSON.stringify(name)),
    gap(),
    bytes(","),
    gap(),
    either(() => [[bytes('"arguments"')], [bytes('"parameters"')]]),
    gap(),
    bytes(":"),
    gap(),
    jsonOf({ type: "object", ...inputSchema }, MAX_TEXT),
  ]);
  return [
    either(() => openings.map((opening) => (opening === "" ? [] : [bytes(opening)]))),
    gap(),
    bytes("{"),
    // As some templates show it by mistake.
    optional(bytes("{")),
    gap(),
    bytes('"name"'),
    optional(bytes(" ")),
    bytes(":"),
    gap(),
    either(() => calls),
    gap(),
    bytes("}"),
  ];
}

export interface CallWatch {
  /** Takes more of an answer, and returns what of it can be no beginning of a call. */
  push(text: string): string;
  /** What was held back. */
  readonly held: string;
  /** Whether what is held back is a call: it has the template's opening, or a function's name. */
  isCall(): boolean;
  readonly grammar: Grammar;
}

/** Looks for the beginning of a call in an answer. */
export function watchForCall(opening: string, functions: readonly ToolDescription[]): CallWatch {
  const own = opening.trimEnd();
  const openings = [...new Set([own, ...OTHER_OPENINGS])];
  const grammar = createGrammar(partsOfCall(openings, functions));
  const firsts = new Set(["{", ...openings.flatMap(([first]) => first ?? [])]);
  const mayBegin = (text: string) => grammar.after(grammar.start, Buffer.from(text)) !== null;
  let held = "";

  return {
    grammar,
    get held() {
      return held;
    },
    isCall: () => (own !== "" && held.startsWith(own)) || /"name" ?:\s*"[^"]*"/.test(held),
    push(text) {
      held += text;
      let at = 0;
      while (at < held.length && !(firsts.has(held[at] ?? "") && mayBegin(held.slice(at)))) at++;
      const shown = held.slice(0, at);
      held = held.slice(at);
      return shown;
    },
  };
}

/** The call that was written, with its opening. */
export function callIn(written: string): ToolRequest {
  const call = JSON.parse(written.slice(written.search(/\{\s*"name"/)));
  return { name: call.name, input: call.arguments ?? call.parameters };
}
