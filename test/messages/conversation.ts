import type { Log } from "../../src/lib/log.ts";
import type { Tool } from "../../src/tools/tool.ts";
import {
  type MockAnswer,
  type MockModelServer,
  type MockOptions,
  startMockModelServer,
} from "../support/mock-model-server.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

/** One frame of an event stream, with its data parsed. */
export interface Frame {
  id: number;
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
  data: any;
}

/** An agent in a whole server, and a model that answers each message as scripted. */
export interface Conversation {
  server: TestServer;
  mock: MockModelServer;
  person: Person;
  instance: string;
  readonly agent: string;
  /** `/v1/instances/…/agents/…`, before `path`. */
  at(path: string): string;
  /** Scripts the model's answers to a message with this text: these in turn, then always the last one. */
  when(text: string, ...answers: MockAnswer[]): void;
  /** Resolves when the model is next asked to answer this message, with at least so many results of its tools. */
  modelAsked(text: string, results?: number): Promise<void>;
  /** Scripts how the model summarises, by what it is given to read. */
  whenSummarising(answer: (material: string) => MockAnswer): void;
  /** Another agent of the same instance. */
  newAgent(body?: object): Promise<string>;
  /** Continues with a new agent without history. */
  begin(): Promise<void>;
  send(text: string, body?: object, headers?: Record<string, string>): ReturnType<Person["ask"]>;
  /** Sends without waiting for the answer; returns the run's id. */
  queue(text: string): Promise<string>;
  stream(text: string, headers?: Record<string, string>): Promise<EventStream>;
  /** The agent's events after a cursor. */
  events(after?: number | string, headers?: Record<string, string>): Promise<EventStream>;
  run(runId: string): ReturnType<Person["ask"]>;
  cancel(runId: string): ReturnType<Person["ask"]>;
  /** Resolves when the agent's log has a matching event of this type (of this run), with all frames up to it. */
  until(kind: string, runId?: string, fits?: (frame: Frame) => boolean): Promise<Frame[]>;
  stop(): Promise<void>;
}

export async function startConversation(
  settings: Record<string, string> = {},
  log?: Log,
  tools?: readonly Tool[],
  { models, ...options }: Parameters<typeof startTestServer>[1] & Pick<MockOptions, "models"> = {},
): Promise<Conversation> {
  const answers = new Map<string, MockAnswer[]>();
  let summarise = (_: string): MockAnswer => ({ kind: "text", tokens: ["They", " talked."] });
  const hello: MockAnswer = {
    kind: "text",
    tokens: ["Hello", ", ", "world"],
    usage: { prompt_tokens: 12, completion_tokens: 3 },
  };
  const mock = startMockModelServer({
    ...(models && { models }),
    answer({ body }) {
      if (isSummary(body)) return summarise(body.messages[1].content);
      // biome-ignore lint/suspicious/noExplicitAny: the request's own shape
      const asked = body.messages.findLast((message: any) => message.role === "user")?.content;
      const left = answers.get(asked) ?? [];
      return (left.length > 1 ? left.shift() : left[0]) ?? hello;
    },
  });
  const server = await startTestServer(
    { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url, ...settings },
    { ...options, ...(log && { log }), ...(tools && { tools }) },
  );
  const person = await server.signUp();
  const instance = (await person.ask("POST", "/v1/instances", { name: "test" })).body.instanceId as string;
  const newAgent = async (body: object = {}): Promise<string> =>
    (await person.ask("POST", `/v1/instances/${instance}/agents`, { name: "Ada", ...body })).body.agentId;
  let agent = await newAgent();
  const at = (path: string) => `/v1/instances/${instance}/agents/${agent}${path}`;
  const events = async (after?: number | string, headers: Record<string, string> = {}) =>
    readEvents(
      await person.fetch("GET", at(`/events${after === undefined ? "" : `?after=${after}`}`), undefined, headers),
    );

  return {
    server,
    mock,
    person,
    instance,
    get agent() {
      return agent;
    },
    at,
    when: (text, ...given) => void answers.set(text, given),
    modelAsked: (text, results = 0) =>
      mock.arrival(({ body }) => {
        const messages: { role: string; content: unknown }[] = body.messages;
        const at = messages.findLastIndex(({ role }) => role === "user");
        return (
          messages[at]?.content === text && messages.slice(at).filter(({ role }) => role === "tool").length >= results
        );
      }),
    whenSummarising(answer) {
      summarise = answer;
    },
    newAgent,
    async begin() {
      agent = await newAgent();
    },
    send: (text, body = {}, headers = {}) => person.ask("POST", at("/messages"), { message: text, ...body }, headers),
    async queue(text) {
      const { status, body } = await person.ask(
        "POST",
        at("/messages"),
        { message: text },
        { Prefer: "respond-async" },
      );
      if (status !== 202) throw new Error(`expected 202, got ${status}: ${JSON.stringify(body)}`);
      return body.runId;
    },
    stream: async (text, headers = {}) =>
      readEvents(await person.fetch("POST", at("/messages"), { message: text, stream: true }, headers)),
    events,
    run: (runId) => person.ask("GET", at(`/runs/${runId}`)),
    cancel: (runId) => person.ask("POST", at(`/runs/${runId}/cancel`)),
    async until(kind, runId, fits = () => true) {
      await using stream = await events(0);
      return await stream.until(
        (frame) => frame.event === kind && (runId === undefined || frame.data.runId === runId) && fits(frame),
      );
    },
    async stop() {
      await server.stop();
      await mock.stop();
    },
  };
}

/** Whether a request asks the model for a summary of older messages. */
export const isSummary = (body: { messages: { content: string }[] }): boolean =>
  body.messages[0]?.content.startsWith("You write the summary") === true;

/** An event stream that is being read. */
export interface EventStream extends AsyncDisposable {
  response: Response;
  /** The bytes so far, as text. */
  text(): string;
  frames: Frame[];
  /** The next frame; null at the end. */
  next(): Promise<Frame | null>;
  /** Reads until a frame matches, and returns all frames so far. Throws if the stream ends before. */
  until(fits: (frame: Frame) => boolean): Promise<Frame[]>;
  /** All frames, once the stream has ended. */
  rest(): Promise<Frame[]>;
  close(): Promise<void>;
}

export function readEvents(response: Response): EventStream {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  const frames: Frame[] = [];
  let text = "";
  let parsed = 0;
  let ended = false;
  const next = async (): Promise<Frame | null> => {
    for (;;) {
      const end = text.indexOf("\n\n", parsed);
      if (end >= 0) {
        const frame = parseFrame(text.slice(parsed, end));
        parsed = end + 2;
        if (!frame) continue;
        frames.push(frame);
        return frame;
      }
      if (ended || !reader) return null;
      const { done, value } = await reader.read();
      if (done) ended = true;
      else text += decoder.decode(value, { stream: true });
    }
  };
  // A broken stream counts as closed.
  const close = async () => void (await reader?.cancel().catch(() => {}));
  return {
    response,
    text: () => text,
    frames,
    next,
    async until(fits) {
      if (frames.some(fits)) return frames;
      for (;;) {
        const frame = await next();
        if (!frame) throw new Error(`the stream ended after ${frames.map(({ event }) => event).join(" ")}`);
        if (fits(frame)) return frames;
      }
    },
    async rest() {
      while (await next());
      return frames;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

const FRAME = /^id: (\d+)\nevent: ([a-z._]+)\ndata: (\{[^\r\n]*\})$/;

/** Null for comments and the retry time; throws for a frame that is not exactly in the contract's format. */
function parseFrame(text: string): Frame | null {
  if (text === ": ping" || text === "retry: 2000") return null;
  const [, id, event, data] = FRAME.exec(text) ?? [];
  if (id === undefined || event === undefined || data === undefined) throw new Error(`not a frame: ${text}`);
  return { id: Number(id), event, data: JSON.parse(data) };
}

export const kindsOf = (frames: Frame[]): string[] => frames.map(({ event }) => event);
/** The deltas after the last restart, joined. */
export function shownText(frames: Frame[], runId?: string): string {
  const own = frames.filter(({ data }) => runId === undefined || data.runId === runId);
  const from = own.findLastIndex(({ event }) => event === "run.restarted") + 1;
  return own
    .slice(from)
    .filter(({ event }) => event === "message.delta")
    .map(({ data }) => data.delta)
    .join("");
}
