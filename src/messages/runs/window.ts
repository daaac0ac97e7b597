import { fence, neutralise } from "../../lib/untrusted.ts";
import { messagesOf } from "../../runtime/prompt.ts";
import type { Turn } from "../../runtime/protocol.ts";
import { tokensOf, tokensOfMessage } from "../../runtime/tokens.ts";
import type { MessageQueries, RecentMessage } from "../queries.ts";
import type { Message, Run } from "../schema.ts";
import type { StepQueries } from "./past-steps.ts";
import { type PastMessage, TurnList } from "./turn-list.ts";

/** How many of the newest messages a prompt considers; of those, the texts that fit the model's context are read. */
const WINDOW_MESSAGES = 1_000;
/**
 * Memory for all conversations together: their short texts, also as requests have them, and `MESSAGE_BYTES` for each
 * message.
 */
const KEPT_BYTES = 20 * 1024 * 1024;
const MESSAGE_BYTES = 640;

/** A run, or the next one of a conversation, whose `messageId` is empty. */
export type RunOfPrompt = Pick<Run, "runId" | "agentId" | "conversationId" | "messageId">;

/** The newest messages of a conversation. */
export interface RecentMessages {
  /** Up to and including the run's own. More are added with the next messages. */
  turns: TurnList;
  /** How many messages were looked at, with those after the run's own. */
  seen: number;
}

export interface Windows {
  /** Call it when the conversation is cleared. */
  forget(conversationId: string): void;
  /** Those after the message `after`; up to the newest if the run has no message yet. */
  read(run: RunOfPrompt, after: number): RecentMessages;
}

/** How a message is shown: the agent's answer follows what it answers. */
interface Row extends RecentMessage {
  /** The agent's answer to it, if it said anything. */
  reply?: Row;
  /** What an answer answers. */
  asked?: Row;
  /** How prompts show it, once one does. */
  past?: PastMessage;
  /** Before a text that another agent, or the agent itself elsewhere, has written in place of a person. */
  label?: string;
}

/** How a prompt shows what was announced. */
const ANNOUNCED = "[Said by myself in the background, not to the person:]\n";

const labelOf = ({ agentId, senderId, senderName }: Message): string =>
  senderId === agentId
    ? "[You are a copy of yourself that does one part of a larger task. This is your part; your answer is its result:]\n"
    : `[The agent ${senderName} writes this, not your user. It gets your answer:]\n`;

/** Of the marks around what a stranger may have written. */
const MARKS_TOKENS = 100;

interface Kept {
  /** Oldest first. */
  rows: Row[];
  bytes: number;
  /** All of them in the order of a prompt, as long as new ones only follow: then a prompt need not look at each. */
  shown: TurnList | null;
}

/**
 * Caches the newest messages of recently used conversations, so that a prompt only reads what is new in its
 * conversation. It never goes stale: a message that has been written never changes.
 */
export function createWindows(
  queries: MessageQueries,
  steps: Pick<StepQueries, "of">,
  keptBytes = KEPT_BYTES,
): Windows {
  /** Least recently used first. */
  const kept = new Map<string, Kept>();
  let total = 0;

  function forget(conversationId: string): void {
    total -= kept.get(conversationId)?.bytes ?? 0;
    kept.delete(conversationId);
  }

  function keep(conversationId: string, window: Kept): void {
    total += window.bytes;
    kept.set(conversationId, window);
    for (const oldest of kept.keys()) {
      if (total <= keptBytes) break;
      forget(oldest);
    }
  }

  function add(window: Kept, messages: readonly RecentMessage[]): Kept {
    const { rows } = window;
    for (const message of messages) {
      const row: Row = { ...message };
      if (row.role === "agent" && row.bytes > 0) {
        const asked = rows.findLast(({ role, runId }) => role === "user" && runId === row.runId);
        if (asked) [asked.reply, row.asked] = [row, asked];
      } else if (row.role === "user" && row.originType === "agent") {
        const message = queries.message(row.messageId);
        if (message) row.label = labelOf(message);
      }
      rows.push(row);
      window.bytes += bytesOf(row);
      if (window.shown && !follow(window.shown, row)) window.shown = null;
    }
    const dropped = rows.splice(0, rows.length - WINDOW_MESSAGES);
    for (const row of dropped) window.bytes -= bytesOf(row);
    if (dropped.length > 0) window.shown = null;
    return window;
  }

  /** With the messages since it was kept; read anew if there are too many to be sure that none is missing. */
  function latest(conversationId: string): Kept {
    const known = kept.get(conversationId);
    forget(conversationId);
    const last = known?.rows.at(-1);
    const since = known && last ? queries.since(conversationId, last.messageSeq, WINDOW_MESSAGES) : [];
    const follows = known && last && since.length < WINDOW_MESSAGES;
    const window = follows
      ? add(known, since)
      : add({ rows: [], bytes: 0, shown: null }, queries.recent(conversationId, WINDOW_MESSAGES).reverse());
    keep(conversationId, window);
    return window;
  }

  function show(shown: TurnList, row: Row): void {
    row.past ??= pastOf(row);
    shown.add(row.past);
  }

  /** Adds the newest message. Returns false if an answer belongs further up. */
  function follow(shown: TurnList, row: Row): boolean {
    if (row.asked && row.asked.past !== shown.all.at(-1)) return false;
    if (row.role === "user" || row.bytes > 0) show(shown, row);
    return true;
  }

  /** The rows from `start` to the message `last`, and whether it is among them. */
  function arrange(rows: readonly Row[], start: number, last: string): { shown: TurnList; found: boolean } {
    const first = rows[start]?.messageSeq ?? 0;
    const shown = new TurnList();
    for (let at = start; at < rows.length; at++) {
      const row = rows[at] as Row;
      // An answer whose message is not among these stands alone, and so does what was announced.
      const isAlone = row.bytes > 0 && (row.asked === undefined || row.asked.messageSeq < first);
      if (row.role === "user" || isAlone) show(shown, row);
      if (row.messageId === last) return { shown, found: true };
      if (row.reply) show(shown, row.reply);
    }
    return { shown, found: false };
  }

  function pastOf(row: Row): PastMessage {
    const { messageId, messageSeq, role, tainted, originType, stepTokens, label } = row;
    const isAnnounced = role === "agent" && originType !== null;
    const words = isAnnounced ? ANNOUNCED : (label ?? "");
    const marks = label !== undefined && tainted ? MARKS_TOKENS : 0;
    const tokens = tokensOfMessage(row.tokens) + (words === "" ? 0 : tokensOf(words)) + marks;
    function read(withSteps: boolean): Turn {
      const text = row.shortText ?? queries.text(messageSeq);
      if (label !== undefined) return { role: "user", text: words + (tainted ? fence(text) : neutralise(text)) };
      if (role === "user") return { role, text };
      if (isAnnounced) return { role: "assistant", text: words + text };
      return withSteps && stepTokens !== null ? steps.of(messageId, text) : { role: "assistant", text };
    }
    // Most are short and as they were said, and every prompt of their conversation shows them.
    const isPlain = row.shortText !== null && stepTokens === null && label === undefined && !isAnnounced;
    const plain = isPlain ? plainly(read(false)) : null;
    return { messageSeq, tokens, tokensWithSteps: tokens + (stepTokens ?? 0), tainted, plain, read };
  }

  return {
    forget,
    read(run, after) {
      const window = latest(run.conversationId);
      const { rows } = window;
      const found = rows.findIndex(({ messageSeq }) => messageSeq > after);
      const start = found < 0 ? rows.length : found;
      const seen = rows.length - start;
      const isNext = run.messageId === "" || rows.at(-1)?.messageId === run.messageId;
      if (isNext && start === 0) {
        window.shown ??= arrange(rows, 0, "").shown;
        return { turns: window.shown, seen };
      }
      const arranged = arrange(rows, start, run.messageId);
      if (arranged.found || run.messageId === "") return { turns: arranged.shown, seen };
      // The run's message is older than the window only if many more have been written since; it is answered alone.
      const own = queries.message(run.messageId);
      const turns = new TurnList();
      if (own === undefined) return { turns, seen: 0 };
      const { messageSeq, tainted, text } = own;
      const tokens = tokensOfMessage(own.tokens);
      const read = (): Turn => ({ role: "user", text });
      turns.add({ messageSeq, tokens, tokensWithSteps: tokens, tainted, plain: null, read });
      return { turns, seen };
    },
  };
}

/** A turn of text alone, which is one message. */
function plainly(turn: Turn): PastMessage["plain"] {
  const [message] = messagesOf(turn);
  return message === undefined ? null : { turn, message };
}

const bytesOf = ({ shortText }: RecentMessage): number => MESSAGE_BYTES + 2 * (shortText?.length ?? 0);
