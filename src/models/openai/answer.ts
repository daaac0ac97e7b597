import { isObject } from "../../lib/is-object.ts";
import { isTooDeep } from "../../lib/json-depth.ts";
import type { FinishReason, ModelEvent } from "../engine.ts";
import { createThoughtFilter } from "../thoughts.ts";
import { brokenFailure, CUT, type ModelServer, streamFailure } from "./failure.ts";
import { createSseLines } from "./sse-lines.ts";

const KIB = 1024;
/** Far more than any token has. A server that sends more than was asked for must not fill the host. */
const CHARACTERS_A_TOKEN = 32;
const LEAST_ANSWER = 128 * KIB;
/** Each answer passes the host's thread in one piece. */
const MOST_ANSWER = 1024 * KIB;
/** How much longer a line of the body may be: JSON in JSON. */
const ESCAPED = 4;
const MAX_TOOL_CALLS = 128;
const MAX_MODEL_NAME = 200;
/** More than any model reads or writes in a call. A server that reports more does not count. */
const MAX_TOKENS_OF_CALL = 10_000_000;

/** Assembles a chat completion from its body: a stream of chunks, or one JSON document. */
export interface AnswerReader {
  /**
   * Takes the next piece, which may be cut anywhere. Throws `ModelError` for a server's error, invalid or oversized
   * data.
   */
  push(piece: string): void;
  /** The body has ended cleanly. Throws `broken` if the answer has not. */
  end(): void;
  /** The text since the last call, as one event. */
  takeText(): ModelEvent[];
  /** The rest: text, tool calls, usage, finish. Throws `broken`, and leaves the text, if a call has no name. */
  takeRest(): ModelEvent[];
  /** The model said why it stopped; only usage may follow. */
  readonly finished: boolean;
  /** The answer is complete. */
  readonly done: boolean;
}

interface OpenCall {
  index: unknown;
  id: string;
  name: string;
  input: string;
}

/** `maxTokens` is what was asked for (docs/contract/runtime.md, Agent loop). */
export function createAnswerReader(server: ModelServer, maxTokens: number): AnswerReader {
  const maxLength = Math.min(MOST_ANSWER, Math.max(LEAST_ANSWER, CHARACTERS_A_TOKEN * maxTokens));
  let form: "events" | "document" | null = null;
  let document = "";
  let text = "";
  let length = 0;
  let usage: ModelEvent | null = null;
  let reason: string | null = null;
  let model: string | null = null;
  let done = false;
  let begun = false;
  const calls: OpenCall[] = [];
  const thoughts = createThoughtFilter();

  const broken = (what: string) => brokenFailure(server, what);
  const tooLong = (): never => {
    throw broken("sent an answer that exceeds the size limit.");
  };
  const count = (added: string): string => {
    length += added.length;
    if (length > maxLength) tooLong();
    return added;
  };

  const readData = (data: string) => {
    if (done) return;
    if (data.startsWith("[DONE]")) done = true;
    else readChunk(parse(data));
  };

  const parse = (json: string): Record<string, unknown> => {
    try {
      const value: unknown = isTooDeep(json) ? null : JSON.parse(json);
      if (isObject(value)) return value;
    } catch {}
    throw broken("sent invalid JSON in its answer.");
  };

  const readChunk = (chunk: Record<string, unknown>) => {
    if (chunk.error != null) throw streamFailure(server, chunk.error);
    if (chunk.object === "error") throw streamFailure(server, chunk);
    if (model === null && typeof chunk.model === "string") model = chunk.model.slice(0, MAX_MODEL_NAME);
    if (isObject(chunk.usage)) usage = readUsage(chunk.usage) ?? usage;
    const choice: unknown = Array.isArray(chunk.choices) ? chunk.choices[0] : undefined;
    if (!isObject(choice) || (choice.index ?? 0) !== 0) return;
    begun = true;
    const delta = choice.delta ?? choice.message;
    if (isObject(delta)) {
      const content = delta.content;
      if (typeof content === "string") text += count(content);
      else if (Array.isArray(content)) for (const part of content) readPart(part);
      // What a model says in place of an answer is what there is to show.
      if (typeof delta.refusal === "string") text += count(delta.refusal);
      if (Array.isArray(delta.tool_calls)) for (const call of delta.tool_calls) readCall(call);
    }
    if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") reason = choice.finish_reason;
  };

  const readPart = (part: unknown) => {
    if (!isObject(part)) return;
    const said = part.type === "text" ? part.text : part.type === "refusal" ? part.refusal : null;
    if (typeof said === "string") text += count(said);
  };

  /** By the specification every delta has an index; servers that send whole calls omit or repeat it. */
  const readCall = (delta: unknown) => {
    if (!isObject(delta)) return;
    const part = isObject(delta.function) ? delta.function : {};
    const id = typeof delta.id === "string" ? delta.id : "";
    const name = typeof part.name === "string" ? part.name : "";
    let call =
      delta.index == null
        ? name === ""
          ? calls.at(-1)
          : undefined
        : calls.findLast((known) => known.index === delta.index);
    if (call !== undefined && name !== "" && call.name !== "") {
      if ((id !== "" && id !== call.id) || name !== call.name) call = undefined;
    }
    if (call === undefined) {
      if (calls.length === MAX_TOOL_CALLS) tooLong();
      call = { index: delta.index, id: "", name: "", input: "" };
      calls.push(call);
    }
    call.id ||= count(id);
    call.name ||= count(name);
    if (typeof part.arguments === "string") call.input += count(part.arguments);
    else if (isObject(part.arguments)) call.input = count(JSON.stringify(part.arguments));
  };

  const lines = createSseLines(ESCAPED * maxLength, readData, tooLong);

  return {
    push(piece) {
      if (form === null) {
        const first = piece.trimStart();
        if (first === "") return;
        // A server that ignores `stream` sends one document, not always with the right content type.
        form = first.startsWith("{") ? "document" : "events";
      }
      if (form === "events") lines.push(piece);
      else if (document.length + piece.length > ESCAPED * maxLength) tooLong();
      else document += piece;
    },
    end() {
      if (form === "document") {
        readChunk(parse(document));
        done = begun;
      } else lines.end();
      if (reason !== null || done) return;
      throw begun
        ? broken(CUT)
        : broken(
            `sent no answer: check that ${server.urlSetting} names an OpenAI-compatible API, usually ending in /v1.`,
          );
    },
    takeText() {
      if (text === "") return [];
      let out = thoughts.push(text);
      text = "";
      // Servers that split between tokens can split an emoji; its halves cannot be encoded in UTF-8.
      const last = out.charCodeAt(out.length - 1);
      if (last >= 0xd800 && last <= 0xdbff) {
        text = out.slice(-1);
        out = out.slice(0, -1);
      }
      return out === "" ? [] : [{ type: "text", text: out.toWellFormed() }];
    },
    takeRest() {
      if (calls.some(({ name }) => name === "")) throw broken("called a tool without naming it.");
      const events: ModelEvent[] = [];
      const last = thoughts.push(text) + thoughts.end();
      if (last !== "") events.push({ type: "text", text: last.toWellFormed() });
      text = "";
      const ids = new Set<string>();
      for (const { id, name, input } of calls) {
        const ownId = id === "" || ids.has(id) ? `call_${crypto.randomUUID().replaceAll("-", "")}` : id;
        ids.add(ownId);
        events.push({ type: "tool_call", call: { id: ownId, name, input: input.trim() === "" ? "{}" : input } });
      }
      if (usage !== null) events.push(usage);
      const finish = finishReason(reason, calls.length > 0);
      events.push({ type: "finish", reason: finish, ...(model !== null && { model }) });
      return events;
    },
    get finished() {
      return reason !== null || done;
    },
    get done() {
      return done;
    },
  };
}

/** What a server's filter has kept back is missing too. */
const CUT_OFF: ReadonlySet<string | null> = new Set(["length", "content_filter"]);

/** Servers disagree on the reason for a tool call (`stop`, `function_call`, none), so the calls themselves decide. */
const finishReason = (reason: string | null, hasCalls: boolean): FinishReason =>
  CUT_OFF.has(reason) ? "length" : hasCalls ? "tool_calls" : "stop";

function readUsage(usage: Record<string, unknown>): ModelEvent | null {
  const { prompt_tokens: promptTokens, completion_tokens: completionTokens, prompt_tokens_details: details } = usage;
  if (!isCount(promptTokens) || !isCount(completionTokens)) return null;
  const cached = isObject(details) ? details.cached_tokens : undefined;
  return {
    type: "usage",
    promptTokens,
    completionTokens,
    ...(isCount(cached) && { cachedTokens: Math.min(cached, promptTokens) }),
  };
}

const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_TOKENS_OF_CALL;
