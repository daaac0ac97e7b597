import { z } from "zod";
import type { FoundAgent } from "../agents/agents.ts";
import { clientLeft, openAiError, STREAM_HEADERS } from "../http/answer.ts";
import { credentialEnded, type LastingAnswer, type LastingAnswers, onLeaving } from "../http/lasting-answers.ts";
import { declaredLength } from "../http/request.ts";
import { type Route, route } from "../http/route.ts";
import { AppError } from "../lib/app-error.ts";
import type { Clock } from "../lib/clock.ts";
import { newId } from "../lib/id.ts";
import { MAX_BODY_BYTES } from "../limits/body-bytes.ts";
import type { Caller } from "../limits/caller.ts";
import { createSlots } from "../limits/slots.ts";
import type { Messages } from "../messages/messages.ts";
import { RUN_ERRORS } from "../messages/routes.ts";
import type { ModelAbilities } from "../models/engine.ts";
import { type Answer, type Ask, type AskedHere, answer } from "./answering.ts";
import { ChatCompletion, chatChunks, chatCompletion, newHeading } from "./chat-answer.ts";
import { askedInChat, ChatRequest, saidInChat } from "./chat-input.ts";
import { type Embed, EmbeddingRequest, Embeddings } from "./embeddings.ts";
import type { FunctionRules } from "./functions.ts";
import { type AgentModels, Model, ModelList } from "./models.ts";
import { answeredResponse, openResponse, ResponseRecord, responseEvents } from "./response-answer.ts";
import { askedInResponse, ResponseRequest, saidIn } from "./response-input.ts";
import { storedResponseRoutes } from "./stored-response-routes.ts";
import type { StoredResponses } from "./stored-responses.ts";
import { type AnswerWriter, streamAnswer } from "./stream.ts";
import { chatStreamExample, responseStreamExample } from "./stream-examples.ts";
import { requireOrdinaryTexts } from "./turns.ts";

export interface OpenAiRouteParts {
  clock: Clock;
  models: AgentModels;
  messages: Pick<Messages, "ask">;
  stored: StoredResponses;
  embed: Embed;
  abilitiesOf(agent: FoundAgent["agent"]): ModelAbilities;
  /** Whether it is one of the tools that the agent may call. */
  isTool(agent: FoundAgent["agent"], name: string): boolean;
  lasting: LastingAnswers;
  /** Keeps a connection open while nothing is sent on it. */
  keepOpen(request: Request): void;
}

/** Conversations of requests that are being answered, in bytes: whoever else keeps them, memory does until then. */
const HELD_BYTES = 128 * 1024 * 1024;

const LIMIT = "a whole number from 1 to 100";

/** OpenAI's API in front of agents (docs/contract/api.md, OpenAI-compatible surface). */
export function openAiRoutes(parts: OpenAiRouteParts): Route[] {
  const { clock, models, messages, stored, embed, abilitiesOf, isTool, lasting, keepOpen } = parts;

  const held = createSlots({ total: HELD_BYTES });

  /** A place for the answer, and the memory for its request and for what was said before it. Throws `rate_limited`, or 503 if the host is full. */
  function takePlace(caller: Caller, request: Request, bytesBefore: number): LastingAnswer {
    const bytes = bytesBefore + bytesOf(request);
    const place = lasting.open(caller, "run");
    if (held.acquire(caller.accountId, bytes) !== "taken") {
      place.close();
      throw new AppError("internal_error", "this host is answering too many long requests at once; try again later", {
        status: 503,
        retryAfterSeconds: 5,
      });
    }
    let isOpen = true;
    return {
      ...place,
      close() {
        if (isOpen) held.release(caller.accountId, bytes);
        isOpen = false;
        place.close();
      },
    };
  }

  const rulesFor = (agent: FoundAgent["agent"]): FunctionRules & { sees: boolean } => {
    const { tools, images = false } = abilitiesOf(agent);
    return { canCall: tools === true, isTool: (name) => isTool(agent, name), sees: images };
  };
  const asking = (
    { instance, agent }: FoundAgent,
    { forced, ...asked }: AskedHere,
    causedRun: (runId: string) => void,
  ): Ask => ({
    forced,
    start: (listener) =>
      messages.ask(instance, agent, asked, (event) => {
        if (event.type === "queued") causedRun(event.runId);
        listener(event);
      }),
  });

  /** Holds a place until the agent has answered, and cancels it if the client leaves or its credential ends. */
  async function whole<T>(
    caller: Caller,
    request: Request,
    bytesBefore: number,
    ask: Ask,
    show: (answer: Answer) => T | Promise<T>,
  ): Promise<T> {
    const place = takePlace(caller, request, bytesBefore);
    try {
      const answering = answer(ask, clock);
      onLeaving(place, request, answering.cancel);
      keepOpen(request);
      return await show(await answering.done);
    } finally {
      place.close();
    }
  }

  /** The same as events; `save` is done before the last of them. */
  function streamed(
    caller: Caller,
    request: Request,
    bytesBefore: number,
    ask: Ask,
    writer: AnswerWriter,
    save: (answer: Answer) => Promise<void> = async () => {},
  ): Response {
    const place = takePlace(caller, request, bytesBefore);
    try {
      const stream = streamAnswer(writer, (hasLeft) => {
        place.close();
        if (hasLeft) answering.cancel(clientLeft());
      });
      const answering = answer(ask, clock, stream.onText);
      place.endWith(() => answering.cancel(credentialEnded()));
      stream.follow(answering.done.then(async (given) => save(given).then(() => given)));
      keepOpen(request);
      return new Response(stream.body, { headers: STREAM_HEADERS });
    } catch (error) {
      place.close();
      throw error;
    }
  }

  return [
    route({
      method: "GET",
      path: "/v1/models",
      name: "listModels",
      tag: "models",
      summary: "The account's agents, and the embedding model, as models",
      access: "read",
      bound: "page",
      errorForm: "openai",
      query: z.object({
        limit: z
          .string({ error: LIMIT })
          .regex(/^([1-9]\d?|100)$/, { error: LIMIT })
          .transform(Number)
          .optional()
          .meta({ type: "integer", pattern: undefined, minimum: 1, maximum: 100 }),
        after: z.string().optional().meta({
          description: "The id of the last model of the page before",
          pattern: "^(agt_[0-9a-f]{32}|local:.+)$",
        }),
      }),
      answer: ModelList,
      handle({ caller, query }) {
        const { limit = null, after = null } = query();
        return models.list(caller, after, limit);
      },
    }),
    route({
      method: "GET",
      path: "/v1/models/:model",
      name: "getModel",
      tag: "models",
      summary: "One of them",
      access: "read",
      bound: "record",
      errorForm: "openai",
      answer: Model,
      find: ({ caller, params }) => models.get(caller, params.model),
      handle: ({ found }) => found,
    }),
    route({
      method: "POST",
      path: "/v1/chat/completions",
      name: "createChatCompletion",
      tag: "chat",
      summary: "Have an agent answer a conversation that the caller keeps",
      description:
        "For OpenAI's clients: the model is an agent. Nothing is stored; the caller sends the whole conversation. The agent's own tools run here, functions of the request come back as `tool_calls`.",
      access: "chat",
      bound: "conversation",
      errorForm: "openai",
      body: ChatRequest,
      example: {
        model: "agt_0190f5e2c4a87b3d8e1f6a2b4c5d7e90",
        messages: [{ role: "user", content: "What should I read on a train?" }],
      },
      answer: ChatCompletion,
      streamExample: chatStreamExample,
      errors: ["not_found", ...RUN_ERRORS],
      async handle({ caller, body, request, requestId, causedRun }) {
        const input = await body();
        const found = models.agentOf(caller, input.model);
        const inRequest = saidInChat(input);
        requireOrdinaryTexts(inRequest.said, bytesOf(request));
        const ask = asking(found, askedInChat(input, inRequest, rulesFor(found.agent)), causedRun);
        const heading = newHeading(found.agent.agentId, clock.now());
        if (input.stream !== true) return whole(caller, request, 0, ask, (given) => chatCompletion(heading, given));
        const withUsage = input.stream_options?.include_usage === true;
        return streamed(
          caller,
          request,
          0,
          ask,
          chatChunks(heading, withUsage, (error) => openAiError(error, requestId)),
        );
      },
    }),
    route({
      method: "POST",
      path: "/v1/responses",
      name: "createResponse",
      tag: "chat",
      summary: "Have an agent answer, and continue from there with the next response",
      description:
        "For OpenAI's clients: the model is an agent. A response that is stored may be continued by `previous_response_id`.",
      access: "chat",
      bound: "conversation",
      errorForm: "openai",
      body: ResponseRequest,
      example: { model: "agt_0190f5e2c4a87b3d8e1f6a2b4c5d7e90", input: "What should I read on a train?" },
      answer: ResponseRecord,
      streamExample: responseStreamExample,
      errors: ["not_found", "conflict", ...RUN_ERRORS],
      async handle({ caller, body, request, causedRun }) {
        const input = await body();
        const found = models.agentOf(caller, input.model);
        const previousId = input.previous_response_id ?? null;
        const before = previousId === null ? NOTHING_SAID : stored.upTo(found.agent.agentId, previousId);
        const references = stored.references(found.agent.agentId);
        const inRequest = saidIn(input, references);
        const { said, latestResponseId: latestId } = inRequest;
        const bytesBefore = before.bytes + references.bytes();
        requireOrdinaryTexts(said, bytesOf(request));
        const asked = askedInResponse(input, inRequest, before, rulesFor(found.agent));
        const isKept = input.store ?? true;
        if (isKept) stored.requireRoom(found, said);
        const createdAt = clock.now();
        const open = openResponse(newId("resp"), { ...input, model: found.agent.agentId }, createdAt);
        const sender = { type: "human", id: caller.accountId, name: caller.name };
        const about = { responseId: open.id, previousId, latestId, said, sender, createdAt };
        const save = async (given: Answer) => {
          if (isKept) await stored.add(found, { ...about, answer: given });
        };
        const ask = asking(found, asked, causedRun);
        if (input.stream === true) return streamed(caller, request, bytesBefore, ask, responseEvents(open), save);
        return whole(caller, request, bytesBefore, ask, async (given) => {
          await save(given);
          return answeredResponse(open, given);
        });
      },
    }),
    ...storedResponseRoutes(models, stored),
    route({
      method: "POST",
      path: "/v1/embeddings",
      name: "createEmbedding",
      tag: "models",
      summary: "Vectors of texts, by the embedded model",
      access: "chat",
      bound: "embeddings",
      errorForm: "openai",
      body: EmbeddingRequest,
      example: { model: "local:all-minilm-l6-v2", input: ["a slim novel", "a timetable"] },
      answer: Embeddings,
      errors: ["not_found", "model_error"],
      async handle({ caller: { accountId }, body, request, requestId }) {
        const input = await body();
        keepOpen(request);
        return embed({ accountId, requestId }, input, request.signal);
      },
    }),
  ];
}

/** Of a body without a length, the most that it may have. */
const bytesOf = (request: Request): number => declaredLength(request) ?? MAX_BODY_BYTES;

const NOTHING_SAID = { said: [], isTainted: false, bytes: 0 };
