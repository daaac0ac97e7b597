import { fence, neutralise } from "../../lib/untrusted.ts";
import type { Turn } from "../../runtime/protocol.ts";
import { tokensOf, tokensOfMessage } from "../../runtime/tokens.ts";
import type { MessageQueries, RecentMessage } from "../queries.ts";
import type { Message, Run } from "../schema.ts";
import type { StepQueries } from "./past-steps.ts";
import { type ReadTurn, TurnList, type Turns } from "./turn-list.ts";

/** How many of the newest messages a prompt considers; of those, the texts that fit the model's context are read. */
export const WINDOW_MESSAGES = 1_000;
/** So many more are kept until the oldest are removed, all at once: then a prompt need not arrange the others anew. */
const SPARE_MESSAGES = 256;
/** Memory for all conversations together. */
const KEPT_BYTES = 32 * 1024 * 1024;
/** Of a conversation, however short, and of a message without an answer, besides what its list of turns takes. */
const [WINDOW_BYTES, UNANSWERED_BYTES] = [1_100, 160];
/** A conversation is in use for so long after a prompt. */
const IN_USE_MS = 60_000;

/** A run, or the next one of a conversation, whose `messageId` is empty. */
export type RunOfPrompt = Pick<Run, "runId" | "agentId" | "instanceId" | "conversationId" | "messageId">;

/** The newest messages of a conversation. */
export interface RecentMessages {
  /** Up to and including the run's own. */
  turns: Turns;
  /** How many messages were looked at, with those after the run's own. */
  seen: number;
}

export interface Windows {
  /** Call it when the conversation is cleared. */
  forget(conversationId: string): void;
  /** Those after any message; up to the newest if the run has no message yet. */
  read(run: RunOfPrompt): (after: number) => RecentMessages;
}

/** How a prompt shows what was announced. */
const ANNOUNCED = "[Said by myself in the background, not to the person:]\n";

const labelOf = ({ agentId, senderId, senderName }: Message): string =>
  senderId === agentId
    ? "[You are a copy of yourself that does one part of a larger task. This is your part; your answer is its result:]\n"
    : `[The agent ${senderName} writes this, not your user. It gets your answer:]\n`;

type Origin = Pick<Message, "role" | "originType" | "tainted">;

const isFromAgent = ({ role, originType }: Origin): boolean => role === "user" && originType === "agent";

/** What a prompt says before a text that is not just said by a person or answered by the agent. */
function wordsBefore(message: Origin, whole: () => Message | undefined): string {
  if (message.role === "agent") return message.originType === null ? "" : ANNOUNCED;
  const asking = isFromAgent(message) ? whole() : undefined;
  return asking ? labelOf(asking) : "";
}

function turnOf(message: Origin, words: string, text: string): Turn {
  if (message.role === "agent") return { role: "assistant", text: words + text };
  if (words === "") return { role: "user", text };
  return { role: "user", text: words + (message.tainted ? fence(text) : neutralise(text)) };
}

/** Of the marks around what a stranger may have written. */
const MARKS_TOKENS = 100;

interface Window {
  accountId: string;
  list: TurnList;
  /** The numbers of all messages, also of empty answers, which no prompt shows. */
  seqs: number[];
  newestId: string;
  /** The messages without an answer, by their runs. */
  unanswered: Map<string, number>;
  /** What it took when it was kept: what prompts have read since is counted at the next one. */
  bytes: number;
  usedMs: number;
}

/**
 * Caches the newest messages of conversations in use, so that a prompt only reads what is new in its conversation. It
 * never goes stale: a message that has been written never changes.
 */
export function createWindows(
  queries: MessageQueries,
  steps: Pick<StepQueries, "of">,
  accountOf: (instanceId: string) => string | undefined,
  keptBytes = KEPT_BYTES,
  nowMs = () => performance.now(),
): Windows {
  /** Least recently used first. */
  const kept = new Map<string, Window>();
  let total = 0;
  /** The bytes of each account's. */
  const held = new Map<string, number>();

  function forget(conversationId: string): void {
    const window = kept.get(conversationId);
    if (!window) return;
    kept.delete(conversationId);
    count(window, -1);
  }

  function count({ accountId, bytes }: Window, sign: 1 | -1): void {
    total += sign * bytes;
    const left = (held.get(accountId) ?? 0) + sign * bytes;
    if (left > 0) held.set(accountId, left);
    else held.delete(accountId);
  }

  /** Keeps the window as the one used last, if there is room. */
  function keep(conversationId: string, window: Window, isNew: boolean): void {
    window.bytes = WINDOW_BYTES + window.list.bytes + window.unanswered.size * UNANSWERED_BYTES;
    window.usedMs = nowMs();
    if (window.bytes > keptBytes) return;
    while (total + window.bytes > keptBytes) {
      const next = nextToGo(window, isNew);
      if (next === undefined) return;
      forget(next);
    }
    kept.set(conversationId, window);
    count(window, 1);
  }

  /**
   * The conversation that makes room for this one: one that is no longer in use, or else one of the account that has the
   * most. A new one displaces none in use of an account that has no more than its own: with a few conversations more than
   * there is memory for, each would displace the next, and all would be read anew for every prompt.
   */
  function nextToGo({ accountId, bytes, usedMs }: Window, isNew: boolean): string | undefined {
    const [oldest] = kept;
    if (oldest === undefined || usedMs - oldest[1].usedMs >= IN_USE_MS) return oldest?.[0];
    let [most, mostBytes] = ["", 0];
    for (const [account, heldBytes] of held) if (heldBytes > mostBytes) [most, mostBytes] = [account, heldBytes];
    if (isNew && mostBytes <= (held.get(accountId) ?? 0) + bytes) return undefined;
    for (const [id, window] of kept) if (window.accountId === most) return id;
    return undefined;
  }

  function add(window: Window, message: RecentMessage): void {
    const { messageSeq, messageId, runId, role, bytes } = message;
    window.seqs.push(messageSeq);
    window.newestId = messageId;
    const askedSeq = role === "agent" ? (window.unanswered.get(runId) ?? null) : null;
    if (role === "user") window.unanswered.set(runId, messageSeq);
    else if (bytes > 0) window.unanswered.delete(runId);
    if (role === "agent" && bytes === 0) return;
    show(window.list, message, askedSeq);
  }

  /** Removes the oldest messages, once there are many more than a prompt considers. */
  function shorten(window: Window): void {
    const { seqs, unanswered } = window;
    if (seqs.length < WINDOW_MESSAGES + SPARE_MESSAGES) return;
    const removed = seqs.splice(0, seqs.length - WINDOW_MESSAGES).at(-1) ?? 0;
    window.list = window.list.newerThan(removed);
    for (const [runId, messageSeq] of unanswered) if (messageSeq <= removed) unanswered.delete(runId);
  }

  /** With the messages since it was kept; read anew if there are too many to be sure that none is missing. */
  function latest({ conversationId, instanceId }: RunOfPrompt): Window {
    const known = kept.get(conversationId);
    forget(conversationId);
    const newest = known?.seqs.at(-1);
    const since = newest === undefined ? [] : queries.since(conversationId, newest, WINDOW_MESSAGES);
    const follows = known !== undefined && newest !== undefined && since.length < WINDOW_MESSAGES;
    const window = follows ? known : newWindow(accountOf(instanceId) ?? "", read);
    const messages = follows ? since : queries.recent(conversationId, WINDOW_MESSAGES).reverse();
    for (const message of messages) add(window, message);
    shorten(window);
    keep(conversationId, window, !follows);
    return window;
  }

  /** Adds a message to those that prompts show. Most are short and without steps: these need not be read again. */
  function show(list: TurnList, message: Omit<RecentMessage, "bytes">, askedSeq: number | null): void {
    const { messageSeq, messageId, tainted, stepTokens, shortText } = message;
    const words = wordsBefore(message, () => queries.message(messageId));
    const marks = isFromAgent(message) && tainted ? MARKS_TOKENS : 0;
    const tokens = tokensOfMessage(message.tokens) + (words === "" ? 0 : tokensOf(words)) + marks;
    const past = { messageSeq, askedSeq, tokens, tokensWithSteps: tokens + (stepTokens ?? 0), tainted };
    list.add(past, shortText !== null && stepTokens === null ? turnOf(message, words, shortText) : null);
  }

  function read(messageSeq: number, withSteps: boolean): Turn {
    const message = queries.messageAt(messageSeq);
    if (message === undefined) return { role: "assistant", text: "" };
    if (withSteps && message.originType === null) return steps.of(message.messageId, message.text);
    const words = wordsBefore(message, () => message);
    return turnOf(message, words, message.text);
  }

  return {
    forget,
    read(run) {
      const { messageId } = run;
      const { seqs, list, newestId } = latest(run);
      const own = messageId === "" || messageId === newestId ? null : queries.message(messageId);
      return (after) => {
        const from = Math.max(after, seqs[seqs.length - WINDOW_MESSAGES - 1] ?? 0);
        const seen = from === 0 ? seqs.length : seqs.length - 1 - seqs.findLastIndex((seq) => seq <= from);
        if (own === null) return { turns: list.after(from, null), seen };
        if (own === undefined) return { turns: new TurnList(read).after(0, null), seen: 0 };
        if (own.messageSeq > from && list.has(own.messageSeq)) return { turns: list.after(from, own.messageSeq), seen };
        // It is older than the window only if many more have been written since; it is answered alone.
        const alone = new TurnList(read);
        show(alone, { ...own, shortText: own.text, stepTokens: null }, null);
        return { turns: alone.after(0, null), seen };
      };
    },
  };
}

const newWindow = (accountId: string, read: ReadTurn): Window => ({
  ...{ accountId, list: new TurnList(read), seqs: [], newestId: "", unanswered: new Map(), bytes: 0, usedMs: 0 },
});
