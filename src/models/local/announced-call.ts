/**
 * Small models say what they could call instead of calling it ("To find out, you can use the `stock` function"), or that
 * they know nothing of what a tool would tell ("I don't have information about saws"). Such a sentence is no answer: at the
 * beginning of one it is held back, and a call is made instead. English only.
 */
import type { ModelRequest } from "../engine.ts";
import { toolsOfServers } from "./tools/server-tools.ts";
import { askedIn } from "./tools/tool-use.ts";

/** Before it is longer, nobody knows how a sentence begins. */
const BEGINNING = 12;
/** A longer one is shown. */
const MOST = 240;
/** It says nothing yet. */
const INTERJECTS = /^\s*(?:sure|certainly|of course|okay|ok|yes|no problem)\b[!,.]*\s*/i;
const ANNOUNCES =
  /^(?:to|let me|let's|let us|please|use|using|by|(?:i|you|we)(?:'ll| can| could| need| should| will| would))\b/i;
const REGRETS = /^(?:unfortunately|(?:i'm |i am )?(?:very |really )?sorry)\b[,!.]*\s*(?:but )?/i;
const DENIES =
  /^(?:i|we)(?:'m| am| are)? (?:don't|do not|can't|cannot|can not|couldn't|could not|have no|not able|unable)\b/i;
/** Then an answer names them for another reason. */
const ASKS_ABOUT_TOOLS = /\b(?:tools?|functions?|capabilit\w+|what (?:else )?can you|you can do|able to do)\b/i;
/** A name such as `now` is an ordinary word, too. */
const IS_NO_WORD = /[_-]|\p{Ll}\p{Lu}/u;

/** Names of functions that an answer may come to without a call of the model's own. */
export interface Reachable {
  /** Called if the answer begins by saying that they can be. */
  announced: readonly string[];
  /** One of these is called if it says nothing, or begins by saying that it cannot help. */
  helping: readonly string[];
}

/** Each is called once for a message. */
export function reachableFor({ messages, tools }: Pick<ModelRequest, "messages" | "tools">): Reachable {
  const { question, made } = askedIn(messages);
  if (ASKS_ABOUT_TOOLS.test(question)) return { announced: [], helping: [] };
  const left = tools.map(({ name }) => name).filter((name) => !made.some((call) => call.name === name));
  return {
    announced: left.filter((name) => IS_NO_WORD.test(name) && !question.includes(name)),
    helping: toolsOfServers({ messages, tools }).related.map(({ name }) => name),
  };
}

export interface AnswerWatch {
  /** Takes more of an answer, and returns what of it can be shown. */
  push(text: string): string;
  /** What was held back. */
  readonly held: string;
  /** The functions one of which is to be called instead; null for none. `isWhole` if the answer ends here. */
  wanted(isWhole?: boolean): readonly string[] | null;
}

export function watchBeginning({ announced, helping }: Reachable): AnswerWatch {
  const names = announced.map((name) => RegExp.escape(name)).join("|");
  const by = "\\b(?:use|using|call|calling|invoke|invoking|run|running|with|through|via)\\s+";
  const said = new RegExp(`${by}(?:the\\s+)?(?:(?:function|tool):?\\s+)?[^\\p{L}\\p{N}\\s]{0,3}(${names})[^\\w-]`, "u");
  const isWatched = announced.length > 0 || helping.length > 0;
  let held = "";
  let isOver = !isWatched;

  function wanted(isWhole = false): readonly string[] | null {
    if (isOver) return null;
    const name = announced.length > 0 ? said.exec(isWhole ? `${held} ` : held)?.[1] : undefined;
    if (name !== undefined) return [name];
    const sentence = sentenceIn(held);
    const isNoHelp = DENIES.test(sentence.replace(REGRETS, "")) || (isWhole && sentence === "");
    return helping.length > 0 && isNoHelp ? helping : null;
  }

  function mayWant(): boolean {
    if (held.length > MOST || held.includes("```")) return false;
    if (held.trimStart().length < BEGINNING) return !/\n\S/.test(held);
    const sentence = sentenceIn(held);
    if (sentence.length < BEGINNING) return true;
    const regret = REGRETS.exec(sentence)?.[0];
    const isLikely =
      ANNOUNCES.test(sentence) || (helping.length > 0 && (regret !== undefined || DENIES.test(sentence)));
    return isLikely && !/[.!?]["')]?\s|\n/.test(sentence.slice(regret?.length ?? 0));
  }

  return {
    get held() {
      return held;
    },
    push(text) {
      if (isOver) return text;
      held += text;
      if (wanted() !== null || mayWant()) return "";
      isOver = true;
      const shown = held;
      held = "";
      return shown;
    },
    wanted,
  };
}

/** Without "Sure!" before it. */
const sentenceIn = (text: string): string => text.trimStart().replaceAll("’", "'").replace(INTERJECTS, "");
