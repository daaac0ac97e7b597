/** A loaded chat model: takes requests and reports what happens to them. */
import { createCall, createCallingGeneration, createOutputOrCall, isUnlikeJson } from "./calling-generation.ts";
import { createConstrainedGeneration } from "./constrained-generation.ts";
import { createGeneration, type Generation, type GenerationOptions } from "./generation.ts";
import { createJsonGrammar } from "./json-grammar.ts";
import { createPrefixCache, type Slot } from "./prefix-cache.ts";
import type { ChatMessage, Generate, ModelToHost } from "./protocol.ts";
import { createReading, PromptTooLong, type Reading } from "./reading.ts";
import { type Sampling, seededRandom } from "./sampling.ts";
import { type Aside, createScheduler } from "./scheduler.ts";
import type { Stepper } from "./stepper.ts";
import type { Tokenizer } from "./tokenizer.ts";
import type { ToolUse } from "./tools/tool-use.ts";

/** A prompt that leaves less room than this for the answer counts as too long. */
const LEAST_ANSWER_TOKENS = 64;

/** What is composed for a file is not shown as it is written: the host is told this often that there is still work. */
const WORKING_MS = 1_000;

/** The highest temperature with functions: what is called, and what is said of a result, is no place for invention. */
const WITH_FUNCTIONS = 0.3;

export interface ChatModel {
  generate(request: Generate): void;
  cancel(id: number): void;
}

/** Takes a slot for a prompt, and gives back the one that was taken before. */
export type Claim = (prompt: readonly number[], answerTokens?: number) => Slot;

export interface ChatModelParts {
  tokenizer: Tokenizer;
  stepper: Stepper;
  /** Conversations at once. */
  slots: number;
  /** Rows of all caches that may stay in memory. */
  cacheTokens: number;
  contextTokens: number;
  /** A request's temperature takes the place of this one. */
  sampling: Sampling;
  send(message: ModelToHost): void;
  /** Writes an answer that is checked meanwhile; absent if the model's answers are not. */
  guarded?(options: GenerationOptions, messages: ChatMessage[], aside: Aside): Generation;
  /** Told that an answer has ended, in whose slot. */
  onReleased?(slot: Slot): void;
  /** Absent if the model calls no tools. */
  useTools?(use: ToolUse, claim: Claim, aside: Aside, answer: (question?: string) => Generation): Generation;
}

export function createChatModel(parts: ChatModelParts): ChatModel {
  const { tokenizer, stepper, contextTokens, guarded, useTools } = parts;
  let sentAt = 0;
  const send = (message: ModelToHost) => {
    sentAt = performance.now();
    parts.send(message);
  };
  const limitTokens = contextTokens - LEAST_ANSWER_TOKENS;
  const { submit, cancel, aside } = createScheduler(parts.slots);
  const cache = createPrefixCache({
    slots: parts.slots,
    budgetRows: parts.cacheTokens,
    copyRows: stepper.copyRows,
    discard: stepper.discard,
  });

  return {
    cancel,
    generate(request) {
      const { id, accountId, instanceId, functions } = request;
      const { temperature } = parts.sampling;
      const usualTemperature = functions === undefined ? temperature : Math.min(temperature, WITH_FUNCTIONS);
      let release = () => {};

      const claim: Claim = (prompt, answerTokens = 0) => {
        release();
        const slot = cache.claim(instanceId, prompt, prompt.length + answerTokens);
        release = () => {
          cache.release(slot);
          parts.onReleased?.(slot);
        };
        send({ type: "started", id, promptTokens: prompt.length, cachedTokens: slot.tokens.length });
        return slot;
      };

      const begin =
        (messages: ChatMessage[]) =>
        (prompt: number[]): Generation => {
          const maxTokens = Math.min(request.maxTokens, contextTokens - prompt.length);
          const slot = claim(prompt, maxTokens);
          const options: GenerationOptions = {
            prompt,
            slot,
            stepper,
            tokenizer,
            maxTokens,
            stop: request.stop.filter((text) => text !== ""),
            sampling: { ...parts.sampling, temperature: request.temperature ?? usualTemperature },
            random: seededRandom(request.seed ?? Math.floor(Math.random() * 2 ** 32)),
          };
          const { callOpening } = tokenizer;
          const { output } = request;
          if (functions !== undefined && callOpening !== null) {
            if (request.mustCall !== undefined) return createCall(options, callOpening, request.mustCall);
            if (output === undefined) {
              return createCallingGeneration(options, callOpening, functions, request.reachable);
            }
            if (isUnlikeJson(callOpening)) return createOutputOrCall(options, callOpening, functions, output);
          }
          if (output !== undefined) return createConstrainedGeneration(options, createJsonGrammar(output));
          return request.guarded && guarded ? guarded(options, messages, aside) : createGeneration(options);
        };

      const answer = (question?: string) => {
        const messages = question === undefined ? request.messages : asking(question, request.messages);
        return readThenWrite(createReading(tokenizer, messages, limitTokens, functions), begin(messages));
      };
      submit(id, {
        accountId,
        instanceId,
        start: () => (request.tools && useTools ? useTools(request.tools, claim, aside, answer) : answer()),
        onTurn({ text, reason, ...rest }, generation) {
          if (text !== "") send({ type: "text", id, text });
          else if (performance.now() - sentAt > WORKING_MS) send({ type: "working" });
          if (reason === undefined) return;
          const completionTokens = generation.completionTokens();
          send({ type: "done", id, completionTokens, reason, ...rest });
        },
        onError(error) {
          if (error instanceof PromptTooLong) send({ type: "overflow", id, ...tokensOf(error) });
          else send({ type: "failed", id, message: String(error) });
        },
        onEnd: () => release(),
      });
    },
  };
}

/** Another question in the place of the last one. */
const asking = (content: string, messages: readonly ChatMessage[]): ChatMessage[] => {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  return messages.map((message, at) => (at === asked ? { ...message, content } : message));
};

const tokensOf = ({ promptTokens, limitTokens }: PromptTooLong) => ({ promptTokens, limitTokens });

/** One job in turns: first the prompt is tokenised, then it runs. */
function readThenWrite(reading: Reading, begin: (prompt: number[]) => Generation): Generation {
  let generation: Generation | undefined;
  return {
    completionTokens: () => generation?.completionTokens() ?? 0,
    async takeTurn() {
      if (generation === undefined) {
        const prompt = reading.takeTurn();
        if (prompt === undefined) return { text: "" };
        // Tokenising the last piece is little work compared with a chunk, so a short message does not give up its turn
        // in between.
        generation = begin(prompt);
      }
      return await generation.takeTurn();
    },
  };
}
