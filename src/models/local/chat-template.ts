/** A model's chat template: how a conversation becomes one text, and how the model writes a call of a function in it. */
import { Template } from "@huggingface/jinja";
import { isObject } from "../../lib/is-object.ts";
import type { ToolDescription } from "../engine.ts";
import type { ChatMessage } from "./protocol.ts";

export interface ChatTemplate {
  /** Ready for the assistant's answer. */
  render(messages: readonly ChatMessage[], functions?: readonly ToolDescription[]): string;
  /**
   * What the model writes before the JSON of a call: `<tool_call>\n`, or nothing. Null if it cannot be told of functions,
   * or writes calls otherwise than as JSON with a name and arguments.
   */
  readonly callOpening: string | null;
}

/** As `tokenizer_config.json` has it. */
export type TemplateText = string | { name: string; template: string }[];

/** For a model that was trained on text alone. */
const PLAIN_TEMPLATE =
  "{% for message in messages %}{{ message['role'] | capitalize }}: {{ message['content'] }}\n\n{% endfor %}" +
  "{% if add_generation_prompt %}Assistant:{% endif %}";

type Render = ChatTemplate["render"];

/** `named` are the control tokens that a template may name. What comes from outside goes through `guard`. */
export function openTemplate(
  text: TemplateText = PLAIN_TEMPLATE,
  named: Record<string, string>,
  guard: Guard,
): ChatTemplate {
  const template = new Template(defaultOf(text));
  const render: Render = (messages, functions = []) =>
    withoutThoughts(
      template.render({
        messages: messages.map((message) => forTemplate(message, guard)),
        add_generation_prompt: true,
        tools: functions.length === 0 ? null : functions.map((one) => functionForTemplate(one, guard)),
        documents: null,
        // Whoever waits for a model on a processor waits long enough for its answer.
        enable_thinking: false,
        ...named,
      }),
    );
  const form = formOf(render);
  return {
    callOpening: callOpeningOf(render),
    render: (messages, functions) => render(form(messages), functions),
  };
}

/** Some templates begin thoughts for the model, and do not ask. */
const withoutThoughts = (prompt: string): string =>
  prompt.trimEnd().endsWith("<think>") ? `${prompt.trimEnd()}\n\n</think>\n\n` : prompt;

function defaultOf(template: TemplateText): string {
  const text = typeof template === "string" ? template : template.find(({ name }) => name === "default")?.template;
  if (text === undefined) throw new Error("it has several chat templates, and none of them is the default");
  return text;
}

type Guard = (text: string) => string;

/** In the words of transformers' `apply_chat_template`, as are the functions. A role is the template's own word. */
function forTemplate({ role, content: said, calls, answers }: ChatMessage, guard: Guard): Record<string, unknown> {
  const content = guard(said);
  if (answers !== undefined) {
    return { role, content, name: guard(answers.name), tool_call_id: guard(answers.id) };
  }
  if (calls === undefined) return { role, content };
  const called = calls.map(({ id, name, input }) => {
    return { id: guard(id), type: "function", function: { name: guard(name), arguments: guarded(input, guard) } };
  });
  return { role, content, tool_calls: called };
}

const functionForTemplate = ({ name, description, inputSchema }: ToolDescription, guard: Guard) => ({
  type: "function",
  function: {
    name: guard(name),
    description: guard(description),
    parameters: guarded(briefly(inputSchema), guard),
  },
});

/** What a call is held to anyway, and nobody chooses an input by: an eighth of what a prompt says of Roost's own tools. */
const LEFT_OUT = new Set([
  "minLength",
  "maxLength",
  "pattern",
  "minItems",
  "maxItems",
  "additionalProperties",
  "default",
]);

function briefly(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(briefly);
  if (!isObject(schema)) return schema;
  const said = Object.entries(schema).filter(([key, value]) => !LEFT_OUT.has(key) && !isEndOfIntegers(value));
  return Object.fromEntries(
    said.map(([key, value]) => {
      const isNames = key === "properties" && isObject(value);
      return [
        key,
        isNames ? Object.fromEntries(Object.entries(value).map(([name, of]) => [name, briefly(of)])) : briefly(value),
      ];
    }),
  );
}

const isEndOfIntegers = (value: unknown): boolean =>
  typeof value === "number" && Math.abs(value) === Number.MAX_SAFE_INTEGER;

/** With every text in it guarded, names included. */
function guarded(value: unknown, guard: Guard): unknown {
  if (typeof value === "string") return guard(value);
  if (Array.isArray(value)) return value.map((each) => guarded(each, guard));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [guard(name), guarded(each, guard)]));
}

const PROBE: ChatMessage[] = [
  { role: "system", content: "a" },
  { role: "user", content: "b" },
];

/**
 * Some templates refuse a system message, or two messages of one role in a row: then it becomes the beginning of the first
 * message, and they become one.
 */
function formOf(render: Render): (messages: readonly ChatMessage[]) => readonly ChatMessage[] {
  const takes = (messages: ChatMessage[]) => {
    try {
      return render(messages) !== "";
    } catch {
      return false;
    }
  };
  const system = takes(PROBE);
  if (system && takes([...PROBE, ...PROBE.slice(1)])) return (messages) => messages;
  return (messages) => {
    const formed: ChatMessage[] = [];
    for (const message of messages) {
      const role = message.role === "system" && !system ? "user" : message.role;
      const last = formed.at(-1);
      if (last?.role === role && isPlain(last) && isPlain(message)) last.content += `\n\n${message.content}`;
      else formed.push({ ...message, role });
    }
    return formed;
  };
}

const isPlain = ({ calls, answers }: ChatMessage): boolean => calls === undefined && answers === undefined;

const PROBED: ToolDescription = {
  name: "probed_name",
  description: "probed_description",
  inputSchema: { type: "object", properties: { alpha: { type: "string" } } },
};
const PROBED_CALL = { id: "probe0001", name: PROBED.name, input: { alpha: "omega" } };
/** The probed call in an answer, after its opening. */
const WRITTEN_CALL =
  /^\s*(.{0,40}?)\{\s*"name"\s*:\s*"probed_name"\s*,\s*"(?:arguments|parameters)"\s*:\s*\{\s*"alpha"\s*:\s*"omega"\s*\}/s;

/** Found by having the template write a call and its result. */
function callOpeningOf(render: Render): string | null {
  const exchange = (...answer: ChatMessage[]): string =>
    render([{ role: "user", content: "b" }, ...answer, { role: "user", content: "c" }], [PROBED]);
  try {
    const [head = "", ...tail] = exchange({ role: "assistant", content: "probed_answer" }).split("probed_answer");
    const written = exchange(
      { role: "assistant", content: "", calls: [PROBED_CALL] },
      { role: "tool", content: "probed_result", answers: PROBED_CALL },
    );
    const start = head.trimEnd();
    const isTold = tail.length === 1 && written.includes(PROBED.description) && written.includes("probed_result");
    if (!isTold || !written.startsWith(start)) return null;
    return WRITTEN_CALL.exec(written.slice(start.length))?.[1] ?? null;
  } catch {
    return null;
  }
}
