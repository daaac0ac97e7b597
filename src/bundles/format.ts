import { z } from "zod";
import { heartbeat } from "../agents/input.ts";
import { AppError } from "../lib/app-error.ts";
import { isTooDeep } from "../lib/json-depth.ts";
import { isLabel } from "../lib/label.ts";
import { POLICIES } from "../tools/tool.ts";
import { MAX_FILE_BYTES, MAX_WORKSPACE_BYTES, MAX_WORKSPACE_FILES } from "../workspace/workspace.ts";

/**
 * An agent in one file: tar, compressed with gzip (docs/contract/api.md, Bundles).
 *
 *   manifest.json            first: what the agent is called, and what its owner says about its tools
 *   workspace/<file>         its files, whatever they hold
 *   skills/<skill>/<file>    the skills of its instance
 *   schedules/<number>.json  what it does at certain times
 *   history/<number>.jsonl   a conversation: what it is, then its messages, oldest first
 *
 * A part that a reader does not know is left out and listed, so that later versions may add some.
 */
export const MANIFEST_FILE = "manifest.json";
export const WORKSPACE_PART = "workspace/";
export const SKILLS_PART = "skills/";
export const SCHEDULES_PART = "schedules/";
export const HISTORY_PART = "history/";

const MIB = 1024 * 1024;
const MAX_SKILL_TEXT_BYTES = 16 * MIB;

/** What a bundle holds at most; an export refuses what an import would. */
export const BUNDLE_BOUNDS = {
  workspaceFiles: MAX_WORKSPACE_FILES,
  workspaceBytes: MAX_WORKSPACE_BYTES,
  fileBytes: MAX_FILE_BYTES,
  skills: 100,
  filesOfSkill: 64,
  skillBytes: MAX_SKILL_TEXT_BYTES,
  schedules: 100,
  scheduleBytes: 256 * 1024,
  /** Conversations besides the default one. */
  conversations: 1_000,
  historyBytes: 64 * MIB,
  /** Of one line, as JSON. */
  messageBytes: 2 * MIB,
  manifestBytes: MIB,
  /** All of it, decompressed: what may be in it, and its headers. */
  bytes: MAX_WORKSPACE_BYTES + MAX_SKILL_TEXT_BYTES + 64 * MIB + 32 * MIB,
  entries: 20_000,
  /** For each of them its own, a folder's, and what describes either. */
  headers: 80_000,
} as const;

/** What is listed as left out; the rest is only counted. */
const MAX_LISTED = 100;
const MAX_LISTED_CHARACTERS = 300;

export const MAX_LABEL = 100;
const labelForm = `one line of 1 to ${MAX_LABEL} characters`;
/** A name that is shown. */
export const label = z.lazy(() =>
  z
    .string({ error: labelForm })
    .trim()
    .refine((text) => isLabel(text) && text !== "" && [...text].length <= MAX_LABEL, { error: labelForm }),
);
/** Where the value of a secret stood is its name, which may be longer. Characters, not UTF-16 code units. */
export const cut = (text: string, most: number): string => [...text].slice(0, most).join("");

const word = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[\x21-\x7e]+$/, { error: "visible ASCII characters" });

const modelName = z.string().min(1).max(200).regex(/^\S+$/, { error: "a name without spaces" });

/** Costs are in millionths of a US dollar. */
const limit = z.int().min(0).nullable();

const NAME = "roost-agent";
const VERSION = 1;

const Manifest = z.lazy(() =>
  z.object({
    bundle: z.literal(NAME, { error: `"${NAME}"` }),
    version: z.literal(VERSION, { error: `${VERSION}: a newer host wrote it` }),
    exportedAt: z.iso.datetime().optional(),
    agent: z.object({
      name: label,
      slug: z
        .string()
        .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, { error: "1 to 63 of a-z, 0-9 and -, not beginning with -" })
        .nullish(),
      displayName: label.nullish(),
      model: modelName.nullish(),
      /** Those that are tried after it. */
      fallbackModels: z.array(modelName).max(3).default([]),
      modelLimits: z
        .object({ tokensPerDay: limit, tokensPerMonth: limit, costPerDay: limit, costPerMonth: limit })
        .nullish(),
      /** The owner's word on its tools, by name. */
      tools: z
        .array(z.object({ tool: word(200), policy: z.enum(POLICIES) }))
        .max(200)
        .default([]),
      heartbeat: heartbeat.default(null),
    }),
    /** What its owner wanted not to be asked again. */
    rules: z
      .array(z.object({ tool: word(200), host: word(300).nullable(), method: word(40).nullable() }))
      .max(1_000)
      .default([]),
    /** Files of which a stranger may have written the text; true for all of them. */
    tainted: z.union([z.literal(true), z.array(z.string()).max(MAX_WORKSPACE_FILES)]).default([]),
    /** What the exporter could not put in. */
    leftOut: z.array(z.string().max(MAX_LISTED_CHARACTERS)).max(MAX_LISTED).default([]),
  }),
);
export type Manifest = z.output<typeof Manifest>;

/** Everything but what says that it is a manifest. */
export const manifestOf = (fields: Omit<Manifest, "bundle" | "version">): Buffer => {
  const write = (tainted: Manifest["tainted"]) =>
    Buffer.from(`${JSON.stringify({ bundle: NAME, version: VERSION, ...fields, tainted }, null, 2)}\n`);
  const all = write(fields.tainted);
  // Too many names: it is never wrong to mistrust more.
  return all.byteLength <= BUNDLE_BOUNDS.manifestBytes ? all : write(true);
};

/** Throws `invalid_request`. `unknown` are the names of members that this version does not know. */
export function parseManifest(bytes: Uint8Array): { manifest: Manifest; unknown: string[] } {
  const value = jsonOf(bytes, MANIFEST_FILE);
  const parsed = Manifest.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const field = [MANIFEST_FILE, ...(issue?.path ?? [])].map(String).join(".").slice(0, 200);
    throw refusal(`${field}: expected ${(issue?.message ?? "another value").replace(/^Invalid input: expected /, "")}`);
  }
  const known = new Set(Object.keys(Manifest.unwrap().shape));
  return { manifest: parsed.data, unknown: Object.keys(value as object).filter((name) => !known.has(name)) };
}

/** Throws `invalid_request` for what is no JSON in UTF-8, or nested deeper than anybody needs. */
export function jsonOf(bytes: Uint8Array, what: string): unknown {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (isTooDeep(text)) throw new SyntaxError("too deep");
    return JSON.parse(text);
  } catch {
    throw refusal(`${what}: expected JSON in UTF-8, nested at most 200 levels deep`);
  }
}

/** The error for a bundle that is not as expected. */
export const refusal = (message: string): AppError => new AppError("invalid_request", `bundle: ${message}`);

/** What is left out: a list that a stranger can make as long as it likes, cut to what somebody would read. */
export interface LeftOut {
  add(what: string): void;
  list(): string[];
  /** The same in the words of `text`, which is asked before anything is cut. */
  listIn(text: (what: string) => Promise<string>): Promise<string[]>;
}

export function createLeftOut(): LeftOut {
  const listed: string[] = [];
  let more = 0;
  const withRest = (all: readonly string[]): string[] => [
    ...all.map((what) => what.toWellFormed().slice(0, MAX_LISTED_CHARACTERS)),
    ...(more === 0 ? [] : [`and ${more} more`]),
  ];
  return {
    add(what) {
      if (listed.length < MAX_LISTED - 1) listed.push(what);
      else more++;
    },
    list: () => withRest(listed),
    listIn: async (text) => withRest(await Promise.all(listed.map(text))),
  };
}
