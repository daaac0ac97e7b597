import { z } from "zod";
import { hoursOfDay, seconds, timeZoneName } from "../lib/time-forms.ts";
import { POLICIES, type Policy } from "../tools/tool.ts";
import type { FileChange } from "../workspace/workspace.ts";
import { MAX_POLICIES, type PolicyChanges } from "./agent-change.ts";
import { SLUG } from "./slug.ts";
import { MAX_FILES_PER_REQUEST } from "./workspaces.ts";

const SLUG_FORM = "1 to 63 of a-z, 0-9 and -, not beginning with -";
/** Models that are tried in turn (docs/contract/api.md, Agents). */
export const MAX_MODELS = 4;
const ONE_MODEL = "local:<name> or openai:<name>";
const MODEL_FORM = `${ONE_MODEL}, a list of 1 to ${MAX_MODELS} of them, or null for the host's default`;
const FILES_FORM = `an object of at most ${MAX_FILES_PER_REQUEST} file names, each with its text`;

/** Fields of the requests that create and change an agent. */
export const slug = z.lazy(() =>
  z
    .string({ error: SLUG_FORM })
    .regex(SLUG, { error: SLUG_FORM })
    .meta({ examples: ["ada"] }),
);
export const modelName = (error = ONE_MODEL) =>
  z
    .string({ error })
    .max(200, { error })
    .regex(/^(local|openai):\S+$/, { error })
    .meta({ examples: ["local:smollm2-135m-instruct"] });
export const model = z.lazy(() =>
  z
    .union(
      [
        modelName(MODEL_FORM),
        z.array(modelName(MODEL_FORM)).min(1, { error: MODEL_FORM }).max(MAX_MODELS, { error: MODEL_FORM }),
      ],
      { error: MODEL_FORM },
    )
    .nullish()
    .describe("Of several, the first that can be reached answers; null for the host's default"),
);
/** Name → text. Not a `z.record`, which drops the name `__proto__`. */
const filesOf = (expected: string, isContent: (content: unknown) => boolean, form: object) =>
  z
    .unknown()
    .transform((given, { issues }): FileChange[] => {
      const refuse = (message: string, path: string[] = []) => {
        issues.push({ code: "custom", input: undefined, message, path });
        return z.NEVER;
      };
      if (typeof given !== "object" || given === null || Array.isArray(given)) return refuse(FILES_FORM);
      const files = Object.entries(given).map(([name, content]) => ({ name, content }));
      if (files.length > MAX_FILES_PER_REQUEST) return refuse(FILES_FORM);
      const wrong = files.find(({ content }) => !isContent(content));
      return wrong ? refuse(expected, [wrong.name]) : files;
    })
    .meta({ type: "object", maxProperties: MAX_FILES_PER_REQUEST, additionalProperties: form });
const isText = (content: unknown) => typeof content === "string";

export const newFiles = z.lazy(() => filesOf("text", isText, { type: "string" }));
export const changedFiles = z.lazy(() =>
  filesOf("text, or null to delete the file", (content) => content === null || isText(content), {
    anyOf: [{ type: "string" }, { type: "null" }],
  }),
);

/** Often enough for what a person would look after now and then, and not so often that it costs more than it is worth. */
const MIN_HEARTBEAT_SECONDS = 300;
const HEARTBEAT_FORM = "an object with everySeconds, timeZone and activeHours, or null for none";

/** How often the agent looks what its HEARTBEAT.md asks of it; also as a bundle has it. */
export const heartbeat = z.lazy(() =>
  z
    .object(
      {
        everySeconds: seconds(MIN_HEARTBEAT_SECONDS),
        timeZone: timeZoneName().default("UTC"),
        activeHours: hoursOfDay().nullable().default(null),
      },
      { error: HEARTBEAT_FORM },
    )
    .nullable()
    .describe("How often it looks what its HEARTBEAT.md asks of it; null for never"),
);

const POLICIES_FORM = `an object of at most ${MAX_POLICIES} tool names, each with ${POLICIES.join(", ")} or null`;
const isPolicy = (value: unknown): value is Policy | null =>
  value === null || (POLICIES as readonly unknown[]).includes(value);

/** Tool name → policy. Like files no `z.record`: every name is checked, `__proto__` too. */
export const policies = z.lazy(() =>
  z
    .unknown()
    .transform((given, { issues }): PolicyChanges => {
      const entries =
        typeof given === "object" && given !== null && !Array.isArray(given) ? Object.entries(given) : undefined;
      if (entries && entries.length <= MAX_POLICIES && entries.every(([, value]) => isPolicy(value))) {
        return Object.fromEntries(entries);
      }
      issues.push({ code: "custom", input: undefined, message: POLICIES_FORM });
      return z.NEVER;
    })
    .meta({
      type: "object",
      maxProperties: MAX_POLICIES,
      additionalProperties: { enum: [...POLICIES, null] },
      description: "The owner's word on tools by name; null takes it back",
    }),
);
