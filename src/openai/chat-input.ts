import { z } from "zod";
import { untilFirstWrong } from "../lib/until-first-wrong.ts";
import type { OutputForm } from "../models/engine.ts";
import type { AnswerLimits } from "../runtime/protocol.ts";
import type { AskedHere } from "./answering.ts";
import {
  FunctionDefinition,
  type FunctionRules,
  functionList,
  functionName,
  offerFunctions,
  outputFormOf,
  schemaFields,
} from "./functions.ts";
import { allowedTools, type ToolChoice, toolChoiceOf } from "./tool-choice.ts";
import { type Said, type SaidInRequest, toTurns, withSomethingSaid } from "./turns.ts";

const TEXT = "text";
const text = z.string({ error: TEXT });
const flag = z.boolean({ error: "true or false" });
const IMAGE = "a data URL of an image, such as data:image/png;base64,…";
const MAX_TOKENS = 1_000_000;
const COUNT = `a whole number from 1 to ${MAX_TOKENS}`;
const TEMPERATURE = "a number from 0 to 2";
const MODEL = "the id of an agent";
const STOP = "text, or a list of at most 4 texts";

/** Fields that both surfaces take. An image is no address: nothing is fetched for a caller. */
export const imageUrl = z.lazy(() =>
  z
    .string({ error: IMAGE })
    // Its beginning: what follows is for the model's server to read, and too long to look at several times.
    .regex(/^data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/_-]/, { error: IMAGE })
    .meta({ examples: ["data:image/png;base64,iVBORw0KGgo="] }),
);
export const temperature = z.lazy(() =>
  z.number({ error: TEMPERATURE }).min(0, { error: TEMPERATURE }).max(2, { error: TEMPERATURE }),
);
export const modelName = z.lazy(() =>
  z.string({ error: MODEL }).min(1, { error: MODEL }).describe("The id of an agent"),
);
export const tokenCount = z.lazy(() =>
  z.int({ error: COUNT }).min(1, { error: COUNT }).max(MAX_TOKENS, { error: COUNT }),
);

/** Text, or a list of parts. */
export const contentOf = <S extends z.ZodType>(part: S, error: string) =>
  z.union([text, untilFirstWrong(z.array(part))], { error: `text, or a list of ${error}` });

const Message = z.lazy(() => {
  const textPart = z.object({ type: z.literal("text"), text });
  const refusalPart = z.object({ type: z.literal("refusal"), refusal: text });
  const imagePart = z.object({ type: z.literal("image_url"), image_url: z.object({ url: imageUrl }) });
  const onlyText = z.discriminatedUnion("type", [textPart], { error: "a part of type text" });
  const userPart = z.discriminatedUnion("type", [textPart, imagePart], { error: "a part of type text or image_url" });
  const ownPart = z.discriminatedUnion("type", [textPart, refusalPart], { error: "a part of type text or refusal" });
  const textContent = contentOf(onlyText, "parts of type text");
  const call = z.object({
    id: text,
    type: z.literal("function", { error: "function" }),
    function: z.object({ name: text, arguments: text }),
  });
  return z.discriminatedUnion(
    "role",
    [
      z.object({ role: z.literal("system"), content: textContent }),
      z.object({ role: z.literal("developer"), content: textContent }),
      z.object({
        role: z.literal("user"),
        content: contentOf(userPart, "parts of type text or image_url"),
      }),
      z.object({
        role: z.literal("assistant"),
        content: contentOf(ownPart, "parts of type text or refusal").nullish(),
        refusal: text.nullish(),
        tool_calls: untilFirstWrong(z.array(call, { error: "a list of calls" })).nullish(),
      }),
      z.object({ role: z.literal("tool"), tool_call_id: text, content: textContent }),
    ],
    { error: "a role: system, developer, user, assistant or tool" },
  );
});

/** The request of a chat completion. What is not listed is ignored. */
export const ChatRequest = z.lazy(() => {
  const named = z.object({ type: z.literal("function"), function: z.object({ name: functionName }) });
  const stopText = z.string({ error: STOP }).min(1, { error: STOP }).max(500, { error: STOP });
  return z.object({
    model: modelName,
    messages: untilFirstWrong(
      z.array(Message, { error: "a list of messages" }).min(1, { error: "at least one message" }),
    ),
    stream: flag.nullish(),
    stream_options: z.object({ include_usage: flag.nullish() }, { error: "an object" }).nullish(),
    max_tokens: tokenCount.nullish(),
    max_completion_tokens: tokenCount.nullish(),
    temperature: temperature.nullish(),
    stop: z.union([stopText, z.array(stopText).max(4, { error: STOP })], { error: STOP }).nullish(),
    tools: functionList(
      z.object({ type: z.literal("function", { error: "function" }), function: FunctionDefinition }),
    ).nullish(),
    tool_choice: toolChoiceOf(
      named,
      z.object({ type: z.literal("allowed_tools"), allowed_tools: z.object(allowedTools(named)) }),
    ).nullish(),
    parallel_tool_calls: flag.nullish(),
    response_format: z
      .discriminatedUnion(
        "type",
        [
          z.object({ type: z.literal("text") }),
          z.object({ type: z.literal("json_object") }),
          z.object({ type: z.literal("json_schema"), json_schema: z.object(schemaFields) }),
        ],
        { error: "a type: text, json_object or json_schema" },
      )
      .nullish(),
    n: z.literal(1, { error: "1: an agent gives one answer" }).nullish(),
    logprobs: z.literal(false, { error: "false: an agent's answer has none" }).nullish(),
  });
});
export type ChatRequest = z.output<typeof ChatRequest>;

type ChatMessage = ChatRequest["messages"][number];

export function saidInChat({ messages }: Pick<ChatRequest, "messages">): SaidInRequest {
  const instructions: string[] = [];
  const said: Said[] = [];
  for (const [at, message] of messages.entries()) {
    if (message.role === "system" || message.role === "developer") instructions.push(textOf(message.content));
    else said.push(saidOf(message, `messages.${at}`));
  }
  return withSomethingSaid({ said, instructions }, "messages");
}

/** What the agent is asked. Throws `invalid_request`. */
export function askedInChat(
  request: ChatRequest,
  { said, instructions }: SaidInRequest,
  rules: FunctionRules & { sees: boolean },
): AskedHere {
  const offered = (request.tools ?? []).map((tool, at) => ({
    ...tool.function,
    param: `tools.${at}.function.parameters`,
  }));
  const { functions, forced } = offerFunctions(offered, choiceOf(request), rules);
  const all = [...instructions, ...(forced ? [forced.instruction] : [])];
  const output = forced?.output ?? formOf(request);
  return {
    forced,
    ...toTurns(said, "messages", rules.sees),
    extras: {
      functions,
      ...(all.length > 0 && { instructions: all.join("\n\n") }),
      limits: limitsOf(request, request.max_completion_tokens ?? request.max_tokens, output),
    },
  };
}

function choiceOf({ tool_choice: choice }: ChatRequest): ToolChoice {
  if (typeof choice !== "object" || choice === null) return { mode: choice ?? "auto", only: null };
  if (choice.type === "function") return { mode: "named", only: [choice.function.name] };
  const { mode, tools } = choice.allowed_tools;
  return { mode, only: tools.map((tool) => tool.function.name) };
}

export function limitsOf(
  { temperature, stop }: { temperature?: number | null | undefined; stop?: string | string[] | null | undefined },
  maxTokens: number | null | undefined,
  output: OutputForm | undefined,
): AnswerLimits {
  return {
    ...(maxTokens != null && { maxTokens }),
    ...(temperature != null && { temperature }),
    ...(stop != null && { stop: [stop].flat() }),
    ...(output && { output }),
  };
}

function formOf({ response_format: form }: ChatRequest): OutputForm | undefined {
  switch (form?.type) {
    case "json_object":
      return outputFormOf(null, "response_format");
    case "json_schema":
      return outputFormOf(form.json_schema, "response_format.json_schema.schema");
    default:
      return undefined;
  }
}

function saidOf(message: Exclude<ChatMessage, { role: "system" | "developer" }>, param: string): Said {
  switch (message.role) {
    case "user": {
      const parts = typeof message.content === "string" ? [] : message.content;
      const images = parts.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []));
      return { kind: "user", text: textOf(message.content), images, param };
    }
    case "assistant": {
      const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: input } }) => ({
        id,
        name,
        input,
      }));
      return { kind: "assistant", text: textOf(message.content ?? message.refusal ?? ""), calls, param };
    }
    case "tool":
      return { kind: "result", callId: message.tool_call_id, text: textOf(message.content), param };
  }
}

const textOf = (content: string | readonly { type: string; text?: string; refusal?: string }[]): string =>
  typeof content === "string"
    ? content
    : content
        .map(({ text, refusal = "" }) => text ?? refusal)
        .join("\n")
        .trim();
