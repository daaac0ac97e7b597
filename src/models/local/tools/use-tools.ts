/**
 * One step of a run with tools: a call, the answer from what the calls have brought, or neither, and then the message is
 * answered as usual.
 */
import type { Generation } from "../generation.ts";
import type { Slot } from "../prefix-cache.ts";
import type { ChatMessage } from "../protocol.ts";
import { PIECE_CHARACTERS } from "../reading.ts";
import type { Stepper } from "../stepper.ts";
import type { Tokenizer } from "../tokenizer.ts";
import { type Call, nextStep } from "./calls.ts";
import { choose } from "./choose.ts";
import { deedIn } from "./deeds.ts";
import { nextOfDeed } from "./doing.ts";
import { EXAMPLES, isAsked } from "./examples.ts";
import { sumIn } from "./expression.ts";
import type { Composing } from "./file-steps.ts";
import { formulaIn } from "./formula.ts";
import { tell } from "./tell.ts";
import type { ToolUse } from "./tool-use.ts";
import type { FindWanted, WantedTool } from "./wanted.ts";

/** What the model is less sure of is not called: of what it wrote in tests, that was mostly wrong. */
const SURE = 0.6;

type Step = { call: Call } | { text: string } | { compose: Composing } | null;

export interface ToolUseParts {
  findWanted: FindWanted;
  tokenizer: Pick<Tokenizer, "layOut" | "encode" | "endOfTurn">;
  stepper: Pick<Stepper, "step">;
  /** A slot for a prompt of these tokens. */
  claim(prompt: readonly number[]): Slot;
}

/** The step as a generation, which goes on with an answer to the question, or to another one, where the model is to write. */
export function withTools(use: ToolUse, parts: ToolUseParts, answer: (question?: string) => Generation): Generation {
  const steps = useTools(use, parts);
  let usual: Generation | undefined;
  let composing: Composing | undefined;
  let composed = "";
  return {
    completionTokens: () => usual?.completionTokens() ?? 0,
    async takeTurn() {
      if (usual === undefined) {
        const { done, value } = await steps.next();
        if (done !== true) return { text: "" };
        if (value !== null && "text" in value) return { text: value.text, reason: "stop" };
        if (value !== null && "call" in value) return { text: "", reason: "tool_calls", call: value.call };
        composing = value?.compose;
        usual = answer(composing?.request);
      }
      const turn = await usual.takeTurn();
      if (composing === undefined) return turn;
      composed += turn.text;
      if (turn.reason === undefined) return { text: "" };
      return { text: "", reason: "tool_calls", call: composing.callWith(composed) };
    },
  };
}

/** Yields after each piece of work, so that others get their turns in between. */
async function* useTools(use: ToolUse, parts: ToolUseParts): AsyncGenerator<void, Step> {
  const { question, offered, made } = use;
  const deed = deedIn(question);
  // What this conversation has told of the person stands in the prompt (../recall.ts).
  const isInPrompt = deed?.does === "recall" && deed.about === null && use.isTold;
  if (deed !== null && !isInPrompt) return nextOfDeed(deed, use);
  const isFormula = offered.includes("run_javascript") && (formulaIn(question) ?? sumIn(question)) !== null;
  const wanted: WantedTool | null = isFormula
    ? { name: "run_javascript", worked: [] }
    : await parts.findWanted(question, offered.filter(isAsked));
  if (wanted === null) {
    // What was offered has changed since the call.
    const last = made.at(-1);
    return last === undefined ? null : { text: tell(last, question) };
  }
  return yield* nextStep(wanted.name, use, (texts) => chooseText(wanted, question, texts, parts));
}

async function* chooseText(
  { name, worked }: WantedTool,
  question: string,
  texts: readonly string[],
  { tokenizer, stepper, claim }: ToolUseParts,
): AsyncGenerator<void, string | null> {
  const [first, ...others] = texts;
  if (first === undefined) return null;
  if (others.length === 0) return first;
  const pieces = tokenizer.layOut(promptFor(EXAMPLES[name].task ?? "", worked, question), PIECE_CHARACTERS);
  const tail = pieces.pop() ?? "";
  const before = pieces.flatMap(tokenizer.encode);
  const encoded = texts.map((text) => {
    return { text, tokens: [...before, ...tokenizer.encode(tail + text), tokenizer.endOfTurn] };
  });
  const longest = encoded.reduce((a, b) => (b.tokens.length > a.tokens.length ? b : a));
  const { text, sureness } = yield* choose({ texts: encoded, slot: claim(longest.tokens), stepper });
  return sureness < SURE ? null : text;
}

function promptFor(task: string, worked: WantedTool["worked"], question: string): ChatMessage[] {
  const examples = worked.flatMap(([say, write = ""]): ChatMessage[] => [
    { role: "user", content: say },
    { role: "assistant", content: write },
  ]);
  return [{ role: "system", content: task }, ...examples, { role: "user", content: question }];
}
