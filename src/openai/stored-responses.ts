import { and, desc, eq, getTableColumns, gt, sql } from "drizzle-orm";
import type { FoundAgent } from "../agents/agents.ts";
import type { Agent } from "../agents/schema.ts";
import { AppError } from "../lib/app-error.ts";
import { isId } from "../lib/id.ts";
import { MAX_CONVERSATION_BYTES } from "../limits/body-bytes.ts";
import type { Quotas } from "../limits/quotas.ts";
import type { Conversations } from "../messages/conversations.ts";
import type { Sender } from "../messages/exchange.ts";
import type { Messages } from "../messages/messages.ts";
import { conversations as conversationRows, messages as messageRows, runs as runRows } from "../messages/schema.ts";
import { prepared } from "../storage/prepared.ts";
import type { Store } from "../storage/store.ts";
import type { Answer } from "./answering.ts";
import { createReferences, type References, type StoredAnswer } from "./item-references.ts";
import type { ShownAnswer } from "./response-answer.ts";
import { responses, type StoredResponse } from "./schema.ts";
import type { Said } from "./turns.ts";

/** How far back a response is continued, in responses and in stored bytes: as much as a request could bring itself. */
const MAX_CHAIN = 200;
const MAX_CHAIN_BYTES = MAX_CONVERSATION_BYTES;

/** A response to be stored. */
export interface NewResponse {
  responseId: string;
  previousId: string | null;
  /** The response that has the last of the answers in `said`, if there is one. */
  latestId: string | null;
  said: readonly Said[];
  answer: Answer;
  sender: Sender;
  createdAt: number;
}

/** One that is stored. */
export interface KeptResponse extends Pick<StoredResponse, "responseId" | "agentId" | "conversationId" | "previousId"> {
  answer: ShownAnswer;
  createdAt: number;
}

export interface SaidBefore {
  said: Said[];
  isTainted: boolean;
  /** As they are stored: texts, calls and images. */
  bytes: number;
}

/** The responses that a later one may continue. Each is also shown in a conversation of its agent. */
export interface StoredResponses {
  /** Of any agent. */
  get(responseId: string): KeptResponse | undefined;
  /** And its conversation, if that has no other response. Call it in a transaction. */
  remove(agent: Agent, response: KeptResponse): void;
  /** What was said up to and including this one, and how many bytes of it. Throws `not_found` for another agent's. */
  upTo(agentId: string, responseId: string): SaidBefore;
  /** The answers that one request refers to by the ids of their items. */
  references(agentId: string): References;
  /** Throws `conflict` where there is no room for what this request says. */
  requireRoom(found: FoundAgent, said: readonly Said[]): void;
  /** Resolves when it is on disk. Continues the conversation of the one before or the latest, if that is its last. */
  add(found: FoundAgent, response: NewResponse): Promise<void>;
}

export interface StoredResponseParts {
  store: Store;
  conversations: Conversations;
  messages: Pick<Messages, "keep">;
  quotas: Pick<Quotas, "requireHistoryRoom">;
}

export function createStoredResponses({
  store,
  conversations,
  messages,
  quotas,
}: StoredResponseParts): StoredResponses {
  const { db } = store;
  const p = sql.placeholder;
  const rowBytes = sql<number>`octet_length(${responses.said})`.as("bytes");
  /** The last that was said, as JSON. */
  const answerIn = sql<string>`json_extract(${responses.said}, '$[#-1]')`.as("answer");
  const ofMessage = eq(messageRows.messageId, responses.messageId);
  const ofConversation = eq(conversationRows.conversationId, responses.conversationId);
  const isThere = and(
    eq(responses.responseId, p("responseId")),
    eq(conversationRows.state, "open"),
    gt(messageRows.messageSeq, conversationRows.clearedMessageSeq),
  );
  const isAsked = and(eq(responses.agentId, p("agentId")), isThere);
  const byId = prepared(db, () =>
    db
      .select({ ...getTableColumns(responses), bytes: rowBytes })
      .from(responses)
      .innerJoin(messageRows, ofMessage)
      .innerJoin(conversationRows, ofConversation)
      .where(isAsked),
  );
  const answerById = prepared(db, () =>
    db
      .select({ answer: answerIn, isTainted: responses.tainted, readBytes: rowBytes })
      .from(responses)
      .innerJoin(messageRows, ofMessage)
      .innerJoin(conversationRows, ofConversation)
      .where(isAsked),
  );
  const shownById = prepared(db, () =>
    db
      .select({
        ...{ responseId: responses.responseId, agentId: responses.agentId, previousId: responses.previousId },
        ...{ conversationId: responses.conversationId, answer: answerIn, finishReason: messageRows.finishReason },
        ...{ promptTokens: messageRows.promptTokens, completionTokens: messageRows.completionTokens },
        cachedTokens: runRows.cachedTokens,
        createdAt: sql<number>`coalesce(${runRows.createdAt}, ${messageRows.createdAt})`.as("asked_at"),
      })
      .from(responses)
      .innerJoin(messageRows, ofMessage)
      // Its run may be gone before it.
      .leftJoin(runRows, eq(runRows.runId, messageRows.runId))
      .innerJoin(conversationRows, ofConversation)
      .where(isThere),
  );
  const latest = prepared(db, () =>
    db
      .select({ responseId: responses.responseId })
      .from(responses)
      .where(eq(responses.conversationId, p("conversationId")))
      .orderBy(desc(responses.responseId))
      .limit(1),
  );

  /** Undefined for another agent's, and for one that was cleared or deleted with its conversation. */
  const find = (agentId: string, responseId: string): (StoredResponse & { bytes: number }) | undefined =>
    isId("resp", responseId) ? byId.get({ agentId, responseId }) : undefined;

  /** A response that continues another than the last one of its conversation begins a conversation of its own. */
  function conversationAfter({ agent }: FoundAgent, previousId: string | null): string {
    const previous = previousId === null ? undefined : find(agent.agentId, previousId);
    const isLast = previous && latest.get({ conversationId: previous.conversationId })?.responseId === previousId;
    return isLast ? previous.conversationId : conversations.createForResponses(agent).conversationId;
  }

  return {
    get(responseId) {
      const found = isId("resp", responseId) ? shownById.get({ responseId }) : undefined;
      if (found === undefined) return undefined;
      const { answer, finishReason, promptTokens, completionTokens, cachedTokens, ...shown } = found;
      const { text, calls }: StoredAnswer["said"] = JSON.parse(answer);
      const usage = { promptTokens: promptTokens ?? 0, completionTokens: completionTokens ?? 0, cachedTokens };
      return { ...shown, answer: { text, calls, finish: finishReason === "length" ? "length" : "stop", usage } };
    },
    remove(agent, { responseId, conversationId }) {
      db.delete(responses).where(eq(responses.responseId, responseId)).run();
      if (latest.get({ conversationId })) return;
      conversations.remove(conversations.get(agent, conversationId));
    },
    references: (agentId) =>
      createReferences((responseId) => {
        const found = answerById.get({ agentId, responseId });
        return found && { ...found, said: JSON.parse(found.answer), bytes: Buffer.byteLength(found.answer) };
      }),
    upTo(agentId, responseId) {
      const chain: StoredResponse[] = [];
      let bytes = 0;
      for (let next: string | null = responseId; next !== null && chain.length < MAX_CHAIN; ) {
        const found = find(agentId, next);
        // Of the one that is continued, nothing is left out.
        if (found === undefined || (chain.length > 0 && bytes + found.bytes > MAX_CHAIN_BYTES)) break;
        chain.unshift(found);
        bytes += found.bytes;
        next = found.previousId;
      }
      if (chain.length === 0) {
        throw new AppError("not_found", "previous_response_id: this agent has no such response, or no longer", {
          param: "previous_response_id",
        });
      }
      const said = chain.flatMap((one) => one.said);
      // Where older ones are gone, a result may have lost its call.
      return {
        said: said.slice(said.findIndex(({ kind }) => kind !== "result")),
        isTainted: chain.some(({ tainted }) => tainted),
        bytes,
      };
    },
    requireRoom: ({ instance }, said) =>
      quotas.requireHistoryRoom(instance.accountId, Buffer.byteLength(JSON.stringify(said))),
    add: (found, { responseId, previousId, latestId, said, answer, sender, createdAt }) =>
      store.commitSoon(
        () => {
          const conversationId = conversationAfter(found, previousId ?? latestId);
          const { text, calls, isTainted } = answer;
          const all: Said[] = [...said, { kind: "assistant", text, calls, param: "previous_response_id" }];
          const question = said.slice(startOfQuestion(said));
          const { agentId } = found.agent;
          const messageId = messages.keep(found.instance, found.agent, {
            conversationId,
            originId: responseId,
            sender,
            isQuestionTainted: question.some(({ kind }) => kind !== "user"),
            question: question.map(({ text }) => text).join("\n\n"),
            answer: [text, ...calls.map(({ name, input }) => `${name}(${input})`)]
              .filter((part) => part !== "")
              .join("\n\n"),
            finishReason: answer.finish === "length" ? "length" : "stop",
            usage: answer.usage,
            model: answer.model,
            steps: answer.steps,
            isTainted,
            createdAt,
          });
          if (messageId === null) return;
          const row = { responseId, agentId, conversationId, messageId, previousId, said: all, tainted: isTainted };
          db.insert(responses).values(row).run();
        },
        "full",
        found.instance.accountId,
      ),
  };
}

/** What follows the last answer: clients may bring all of their conversation again. An answer that is to go on follows its question. */
function startOfQuestion(said: readonly Said[]): number {
  const answer = said.findLastIndex(({ kind }) => kind === "assistant");
  return answer < said.length - 1 ? answer + 1 : said.findLastIndex(({ kind }) => kind === "user");
}
