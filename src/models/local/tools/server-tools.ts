/**
 * Which tools of MCP servers a message is about. A small model asked "And how many saws?" after one call makes a number up,
 * or says that it cannot know. By words, and in English only.
 */
import { isStatement } from "../../../lib/questions.ts";
import { isOfServer, serverOf } from "../../../lib/tool-names.ts";
import { stemsOf } from "../../../lib/words.ts";
import { type ModelRequest, messagesIn, type ToolDescription } from "../../engine.ts";
import { askedIn } from "./tool-use.ts";

const GOES_ON = /^\W*(?:and|what about|how about|how many|how much|now|then|also)\b/i;
/** Words of all kinds of questions, tools and schemas. */
const USUAL = new Set(
  stemsOf(
    "the and any all are can did does for from get give had has have her his how its let make many may much not now one our please say see some such tell than that their them then there these they this time use want was were what when where which who whom whose why will with would you your about " +
      "add change check create delete fetch find list look new open post query read remove run search send set show start stop update write " +
      "array boolean data description id info integer item items name number object result server string text tool type value",
  ),
);
const tellingWords = (text: string): Set<string> =>
  new Set(stemsOf(text).filter((word) => word.length > 2 && !USUAL.has(word)));
const share = (some: ReadonlySet<string>, others: ReadonlySet<string>): boolean => !some.isDisjointFrom(others);

export interface ToolsOfServers {
  /** Those of the servers that the message is about, by its words or because it goes on. */
  named: readonly ToolDescription[];
  /** All, if the message may have to do with any of them, by a word of a description; else none. */
  related: readonly ToolDescription[];
}
const NONE: ToolsOfServers = { named: [], related: [] };

/** None once a tool was called for the message. */
export function toolsOfServers({ messages, tools }: Pick<ModelRequest, "messages" | "tools">): ToolsOfServers {
  const ofServers = tools.filter(({ name }) => isOfServer(name));
  const { question, made } = askedIn(messages);
  if (ofServers.length === 0 || made.length > 0) return NONE;
  const words = tellingWords(question);
  const last = goesOnFrom(messages);
  const named = new Set(
    ofServers
      .filter(({ name }) => share(words, tellingWords(name)) || serverOf(name) === last)
      .map(({ name }) => serverOf(name)),
  );
  const isRelated = ofServers.some((tool) => share(words, tellingWords(describe(tool))));
  return {
    named: isStatement(question) ? [] : ofServers.filter(({ name }) => named.has(serverOf(name))),
    related: named.size > 0 || isRelated ? ofServers : [],
  };
}

const describe = ({ name, description, inputSchema }: ToolDescription): string =>
  `${name} ${description} ${JSON.stringify(inputSchema.properties ?? {})}`;

/** The server of which a tool was called for the message before, if this one goes on from it: "And saws?" */
function goesOnFrom(parts: ModelRequest["messages"]): string | undefined {
  const messages = messagesIn(parts);
  const [before, asked] = messages.flatMap(({ role }, at) => (role === "user" ? [at] : [])).slice(-2);
  if (before === undefined || asked === undefined || !GOES_ON.test(messages[asked]?.content ?? "")) return undefined;
  return messages
    .slice(before, asked)
    .flatMap((one) => (one.role === "assistant" ? (one.toolCalls ?? []) : []))
    .map(({ name }) => serverOf(name))
    .findLast((server) => server !== undefined);
}
