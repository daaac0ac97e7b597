/**
 * The tools one of which a model must call for what a message plainly asks. Small models say that they have done a thing
 * instead of doing it: asked for ten such things after a first one, one of 1.5 billion parameters called no tool, and when
 * it had to, it called nine rightly. Which tool, with what, is the model's choice. English only.
 */
import { isObject } from "../../../lib/is-object.ts";
import { PLEASE } from "../../../lib/questions.ts";
import type { ModelRequest, ToolDescription } from "../../engine.ts";
import type { Deed } from "./deed.ts";
import { deedIn } from "./deeds.ts";
import { filesMentioned, withoutAgentsOwn } from "./details.ts";
import { IS_NAME } from "./file-steps.ts";
import type { MadeCall } from "./made-call.ts";
import { toolsOfServers } from "./server-tools.ts";
import { namesIn, tell } from "./tell.ts";
import { askedIn } from "./tool-use.ts";

interface Tools {
  /** By one of these it is done. */
  by: readonly string[];
  /** These may come before; `first` if they must: who has not read a file does not know what to replace in it. */
  looks?: readonly string[];
  first?: boolean;
  /** Whether inputs may be given that need not be. */
  isDetailed?: boolean;
  /** How often it may fail; by default twice. */
  tries?: number;
}

const CHANGE: Tools = { by: ["edit_file", "write_file"], looks: ["read_file", "list_files"], first: true };
const TOOLS: Readonly<Record<Deed["does"], Tools | null>> = {
  remember: { by: ["remember"] },
  write: { by: ["write_file"] },
  compose: { by: ["write_file"] },
  add: CHANGE,
  take: CHANGE,
  replace: CHANGE,
  check: CHANGE,
  clear: CHANGE,
  copy: { by: ["write_file"], looks: ["read_file", "list_files"], first: true },
  rename: { by: ["write_file"], looks: ["read_file", "list_files"], first: true },
  unknown: CHANGE,
  // What cannot be read the first time is not there.
  read: { by: ["read_file"], looks: ["list_files"], tries: 1 },
  list: { by: ["list_files"] },
  recall: { by: ["search_memory"] },
  // An agent is told to ask before it deletes.
  delete: null,
  forget: null,
};
const PAGE: Tools = { by: ["web_fetch"] };
const LOOK_AT =
  "(?:fetch|open|read|summari[sz]e|visit|browse|check|get|load|look at|go to|tell me what|what(?:'s| is| does))";
const ASKS_FOR_PAGE = new RegExp(`${PLEASE}${LOOK_AT}\\b[^]*\\bhttps?://\\S`, "i");
/** A thing that has not been done after so many calls will not be. */
const MAX_CALLS = 4;
/** Names between which the model can be made to choose. */
const MAX_CHOICE = 200;
/** Whoever has said no is not asked again. */
const REFUSED = /\bdenied\b|\bdenial\b/i;

/**
 * The tools, with what of their inputs the model is to choose. Undefined if it may do as it likes: nothing of the kind is
 * asked for, or it is done.
 */
export function mustCall({
  messages,
  tools,
}: Pick<ModelRequest, "messages" | "tools">): readonly ToolDescription[] | undefined {
  const { question, made } = askedIn(messages);
  const deed = deedIn(question);
  const wanted = wantedBy(deed, question);
  if (wanted === null) {
    const { named } = toolsOfServers({ messages, tools });
    return named.length > 0 ? named : undefined;
  }
  if (made.length >= MAX_CALLS) return undefined;
  const { by, looks = [], first = false, isDetailed = false, tries = 2 } = wanted;
  if (made.some(({ name, isError, output }) => by.includes(name) && (!isError || REFUSED.test(output))))
    return undefined;
  const failures = made.filter(({ name, isError }) => isError && by.includes(name)).length;
  if (failures >= tries) return undefined;
  const offered = (names: readonly string[]) => tools.filter(({ name }) => names.includes(name));
  if (offered(by).length === 0) return undefined;
  const looksLeft = offered(looks).filter(({ name }) => !made.some((call) => call.name === name));
  const mustLook = first && made.length === 0 && looksLeft.length > 0;
  const those = mustLook ? looksLeft : [...offered(by), ...looksLeft];
  const file = deed !== null && "file" in deed ? deed.file : null;
  return isDetailed ? those : those.map(withNeededInput).map((tool) => ofListedFiles(tool, file, made));
}

const SHOWS: Partial<Record<Deed["does"], string>> = { read: "read_file", list: "list_files" };

/** What was asked to be shown, once a call has brought it: a small model says that it has read it. */
export function shownFor({ messages }: Pick<ModelRequest, "messages">): string | undefined {
  const { question, made } = askedIn(messages);
  const [last, deed] = [made.at(-1), deedIn(question)];
  if (last === undefined || last.isError || deed === null || SHOWS[deed.does] !== last.name) return undefined;
  // A model of this size can sum up what it has read.
  return deed.does === "read" && deed.isSummary ? undefined : tell(last, question);
}

/** Among all names, a small model takes one of the agent's own files for "my list". */
function ofListedFiles(tool: ToolDescription, file: string | null, made: readonly MadeCall[]): ToolDescription {
  const listed = made.find(({ name, isError }) => name === "list_files" && !isError);
  const { properties } = tool.inputSchema;
  if (tool.name !== "read_file" || listed === undefined || file === null || !isObject(properties)) return tool;
  const names = namesIn(listed.output);
  const possible = IS_NAME.test(file) ? names : withoutAgentsOwn(names);
  const mentioned = filesMentioned(file, possible);
  const meant = mentioned.length > 0 ? mentioned : withoutAgentsOwn(names);
  if (meant.length === 0 || meant.length > MAX_CHOICE) return tool;
  return { ...tool, inputSchema: { ...tool.inputSchema, properties: { ...properties, name: { enum: meant } } } };
}

/** What need not be given is made up otherwise: "in folder USER", "lines 1 to 10". */
function withNeededInput(tool: ToolDescription): ToolDescription {
  const { properties, required = [], ...schema } = tool.inputSchema;
  if (!isObject(properties) || !Array.isArray(required)) return tool;
  const needed = Object.fromEntries(Object.entries(properties).filter(([name]) => required.includes(name)));
  return { ...tool, inputSchema: { ...schema, properties: needed, required, additionalProperties: false } };
}

function wantedBy(deed: Deed | null, question: string): Tools | null {
  if (deed?.does === "list" && deed.folder !== null) return { by: ["list_files"], isDetailed: true };
  if (deed !== null) return TOOLS[deed.does];
  return ASKS_FOR_PAGE.test(question) ? PAGE : null;
}
