import { z } from "zod";
import { untilFirstWrong } from "../lib/until-first-wrong.ts";
import type { OutputForm, ToolCall } from "../models/engine.ts";
import type { AskedHere } from "./answering.ts";
import { contentOf, imageUrl, limitsOf, modelName, temperature, tokenCount } from "./chat-input.ts";
import {
  FunctionDefinition,
  type FunctionRules,
  functionList,
  functionName,
  offerFunctions,
  outputFormOf,
  schemaFields,
} from "./functions.ts";
import { type References, responseOfItem } from "./item-references.ts";
import { allowedTools, type ToolChoice, toolChoiceOf } from "./tool-choice.ts";
import { type Said, type SaidInRequest, toTurns, withSomethingSaid } from "./turns.ts";

const text = z.string({ error: "text" });
const flag = z.boolean({ error: "true or false" });
/** For what would change the answer and cannot be honoured. */
const absent = (why: string) => z.null({ error: `nothing: ${why}` }).optional();

const INPUT =
  "text, or a list of messages, function calls and their outputs, neither of them empty; images as data URLs";
const ITEM = "an item of type message, function_call, function_call_output, item_reference or reasoning";
const PART = "a part of type input_text, output_text, input_image or refusal";
const OUTPUT_PART = "a part of type input_text or output_text: an agent reads results as text";
const ROLE = "a role: user, assistant, system or developer";
const METADATA = "at most 16 texts of up to 512 characters, by names of up to 64";
const FORM = "a type: text, json_object or json_schema";

/** Of an answer that is sent again. */
const itemId = text.nullish();
const Item = z.lazy(() => {
  const textPart = z.object({ type: z.enum(["input_text", "output_text"]), text });
  const imagePart = z.object({ type: z.literal("input_image"), image_url: imageUrl });
  const refusalPart = z.object({ type: z.literal("refusal"), refusal: text });
  const part = z.discriminatedUnion("type", [textPart, imagePart, refusalPart], { error: PART });
  const outputPart = z.discriminatedUnion("type", [textPart], { error: OUTPUT_PART });

  return z.discriminatedUnion(
    "type",
    [
      z.object({
        type: z.literal("message").optional(),
        id: itemId,
        role: z.enum(["user", "assistant", "system", "developer"], { error: ROLE }),
        content: contentOf(part, "parts"),
      }),
      z.object({ type: z.literal("function_call"), id: itemId, call_id: text, name: text, arguments: text }),
      z.object({
        type: z.literal("function_call_output"),
        call_id: text,
        output: contentOf(outputPart, "parts"),
      }),
      z.object({ type: z.literal("item_reference"), id: text }),
      z.object({ type: z.literal("reasoning") }),
    ],
    { error: ITEM },
  );
});

/** Of its client, for itself; its answer repeats it. */
const metadata = z.lazy(() =>
  z
    .record(z.string().max(64, { error: METADATA }), z.string({ error: METADATA }).max(512, { error: METADATA }), {
      error: METADATA,
    })
    .refine((given) => Object.keys(given).length <= 16, { error: METADATA }),
);

const namedFunction = z.object({ type: z.literal("function"), name: functionName });

/** The request of a response. What is not listed is ignored. */
export const ResponseRequest = z.lazy(() =>
  z.object({
    model: modelName,
    input: z.union([text.min(1, { error: INPUT }), untilFirstWrong(z.array(Item).min(1, { error: INPUT }))], {
      error: INPUT,
    }),
    instructions: text.nullish(),
    previous_response_id: text.nullish(),
    store: flag.nullish().describe("Whether a later response may continue this one; true by default"),
    stream: flag.nullish(),
    max_output_tokens: tokenCount.nullish(),
    temperature: temperature.nullish(),
    tools: functionList(
      z.object({
        type: z.literal("function", { error: "function: an agent has its other tools itself" }),
        ...FunctionDefinition.unwrap().shape,
      }),
    ).nullish(),
    tool_choice: toolChoiceOf(
      namedFunction,
      z.object({ type: z.literal("allowed_tools"), ...allowedTools(namedFunction) }),
    ).nullish(),
    parallel_tool_calls: flag.nullish(),
    text: z
      .object({
        format: z
          .discriminatedUnion(
            "type",
            [
              z.object({ type: z.literal("text") }),
              z.object({ type: z.literal("json_object") }),
              z.object({ type: z.literal("json_schema"), ...schemaFields }),
            ],
            { error: FORM },
          )
          .nullish(),
      })
      .nullish(),
    metadata: metadata.nullish(),
    background: z.literal(false, { error: "false: a response is answered while its client waits" }).nullish(),
    conversation: absent("continue a response with previous_response_id"),
    prompt: absent("an agent's files are its prompt"),
  }),
);
export type ResponseRequest = z.output<typeof ResponseRequest>;

/** The same of a response's request. */
export interface SaidInResponseRequest extends SaidInRequest {
  /** Whether it quotes what a stranger may have written: what callers send as an answer or a result, whatever it is. */
  isTainted: boolean;
  /** The response that has the last of the answers here, as far as their ids say. */
  latestResponseId: string | null;
}

export function saidIn({ input }: Pick<ResponseRequest, "input">, references: References): SaidInResponseRequest {
  if (typeof input === "string") {
    const said: Said[] = [{ kind: "user", text: input, images: [], param: "input" }];
    return { said, instructions: [], isTainted: false, latestResponseId: null };
  }
  const answered = (text: string, calls: ToolCall[], param: string) => {
    const last = said.at(-1);
    // Calls of one answer are items of their own here.
    if (last?.kind === "assistant" && calls.length > 0) last.calls.push(...calls);
    else said.push({ kind: "assistant", text, calls, param });
  };
  const instructions: string[] = [];
  const said: Said[] = [];
  for (const [at, item] of input.entries()) {
    const param = `input.${at}`;
    if ("role" in item) {
      if (item.role === "system" || item.role === "developer") instructions.push(textOf(item.content));
      else if (item.role === "user")
        said.push({ kind: "user", text: textOf(item.content), images: imagesOf(item.content), param });
      else answered(textOf(item.content), [], param);
    } else if (item.type === "function_call") {
      answered("", [{ id: item.call_id, name: item.name, input: item.arguments }], param);
    } else if (item.type === "item_reference") {
      const { text, calls } = references.find(item.id, `${param}.id`);
      answered(text, calls, param);
    } else if (item.type === "function_call_output") {
      said.push({ kind: "result", callId: item.call_id, text: textOf(item.output), param });
    }
  }
  return {
    ...withSomethingSaid({ said, instructions }, "input"),
    isTainted: references.isTainted() || input.some(isQuoted),
    latestResponseId: input.reduce<string | null>((latest, item) => responseIn(item) ?? latest, null),
  };
}

type Item = z.output<typeof Item>;

const isQuoted = (item: Item): boolean =>
  "role" in item ? item.role === "assistant" : item.type === "function_call" || item.type === "function_call_output";

const responseIn = (item: Item): string | null => ("id" in item ? responseOfItem(item.id ?? "") : null);

/** What the agent is asked, after what was said before. Throws `invalid_request`. */
export function askedInResponse(
  request: ResponseRequest,
  { said, instructions, isTainted }: SaidInResponseRequest,
  before: { said: readonly Said[]; isTainted: boolean },
  rules: FunctionRules & { sees: boolean },
): AskedHere {
  const offered = (request.tools ?? []).map((tool, at) => ({ ...tool, param: `tools.${at}.parameters` }));
  const { functions, forced } = offerFunctions(offered, choiceOf(request), rules);
  const all = [
    ...(request.instructions ? [request.instructions] : []),
    ...instructions,
    ...(forced ? [forced.instruction] : []),
  ];
  const { turns } = toTurns([...before.said, ...said], "input", rules.sees);
  return {
    forced,
    turns,
    isTainted: before.isTainted || isTainted,
    extras: {
      functions,
      ...(all.length > 0 && { instructions: all.join("\n\n") }),
      limits: limitsOf(request, request.max_output_tokens, forced?.output ?? formOf(request)),
    },
  };
}

function choiceOf({ tool_choice: choice }: ResponseRequest): ToolChoice {
  if (typeof choice !== "object" || choice === null) return { mode: choice ?? "auto", only: null };
  if (choice.type === "function") return { mode: "named", only: [choice.name] };
  return { mode: choice.mode, only: choice.tools.map(({ name }) => name) };
}

function formOf({ text: asked }: ResponseRequest): OutputForm | undefined {
  const form = asked?.format;
  switch (form?.type) {
    case "json_object":
      return outputFormOf(null, "text.format");
    case "json_schema":
      return outputFormOf(form, "text.format.schema");
    default:
      return undefined;
  }
}

type Content = string | readonly ({ text: string } | { refusal: string } | { image_url: string })[];

const textOf = (content: Content): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => ("text" in part ? [part.text] : "refusal" in part ? [part.refusal] : [])).join("\n");

const imagesOf = (content: Content): string[] =>
  typeof content === "string" ? [] : content.flatMap((part) => ("image_url" in part ? [part.image_url] : []));
