import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { type HostileWeb, startHostileWeb } from "../egress/hostile-web.ts";
import { type EventStream, type Frame, readEvents } from "../messages/conversation.ts";
import { type RunningBinary, type StartOptions, startBinary } from "../support/binary.ts";
import { type MockAnswer, type MockRequest, startMockModelServer } from "../support/mock-model-server.ts";

/** A call of a tool, as the model writes it: text is sent as it is, anything else as JSON. */
export type Call = [tool: string, input: unknown];

/** How a run ends, or that it waits for a person. */
const ENDINGS = ["run.completed", "run.failed", "run.cancelled", "approval.requested"] as const;
type Ending = (typeof ENDINGS)[number];

/** What became of a run. */
export interface Ran {
  runId: string;
  frames: Frame[];
  ending: Ending;
  /** What the model was given for each call, in the order in which the calls ended. */
  results: string[];
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
  approval: any;
}

export interface Agent {
  /** `/v1/instances/…/agents/…`. */
  path: string;
  /** The model makes these calls, one step each, or several in one, and then says that it is done. */
  run(...steps: (Call | Call[])[]): Promise<Ran>;
  /** The same in a new conversation, which knows nothing of what was read before. */
  runAnew(...steps: (Call | Call[])[]): Promise<Ran>;
  /** The run that waited, until it ends or waits again. */
  follow(waited: Ran): Promise<Ran>;
  say(message: string): Promise<Ran>;
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
export type Answer = { status: number; body: any };

/** The compiled binary with an owner who can decide, a model that does as its agent's messages say, and two places on the web. */
export interface World extends AsyncDisposable {
  readonly server: RunningBinary;
  dataDir: string;
  instanceId: string;
  /** Kills the host as a crash would, and starts it again. */
  restart(): Promise<void>;
  ask(method: string, path: string, body?: unknown): Promise<Answer>;
  newAgent(tools?: Record<string, string>, instanceId?: string): Promise<Agent>;
  decide(approvalId: string, decision: object): Promise<Answer>;
  /** A host that the operator names, so that agents may reach it. */
  shop: HostileWeb & { url: string; host: string };
  /** One beside it on the same machine, that nobody may reach. */
  inside: HostileWeb;
  /** What the operator has in the environment of the host, and nobody else may ever see. */
  canaries: string[];
  /** The warnings of a loop that the model was given, each once. */
  warnings(): string[];
  /** Fails if a model, an event or a log was ever given one of them, or these. */
  expectNothingLeaked(...more: string[]): void;
}

const DONE: MockAnswer = { kind: "text", tokens: ["Done."] };

/** What the model is to do, by the message that says so: a message has room for little. */
const scripts = new Map<string, Call[][]>();

function scriptOf(steps: (Call | Call[])[]): string {
  const message = `Follow script ${scripts.size + 1}.`;
  scripts.set(
    message,
    steps.map((step) => (isCall(step) ? [step] : step)),
  );
  return message;
}
const isCall = (step: Call | Call[]): step is Call => typeof step[0] === "string";

/** Takes the next step of the script, or says that it is done. */
function answerOf({ body: { messages } }: MockRequest): MockAnswer {
  const at = messages.findLastIndex(({ role }: { role: string }) => role === "user");
  const done = messages.slice(at).filter(({ role }: { role: string }) => role === "assistant").length;
  const step = scripts.get(messages[at].content)?.[done];
  const calls = step?.map(([name, given], place) => ({ id: `call_${done}_${place}`, name, arguments: given }));
  return calls === undefined ? DONE : { kind: "tools", calls, whole: true };
}

export interface WorldOptions extends StartOptions {
  /** More answers of the shop, by path. */
  answers?: Record<string, (request: string) => string | Buffer>;
  /** More hosts that the operator names. */
  egress?: string[];
}

export async function startWorld({
  answers = {},
  egress = [],
  env = {},
  ...options
}: WorldOptions = {}): Promise<World> {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-threats-"));
  const shop = startHostileWeb({ answers });
  const inside = startHostileWeb();
  let told = "";
  const mock = startMockModelServer({
    record: false,
    answer(request) {
      told += JSON.stringify(request.body);
      return answerOf(request);
    },
  });
  const foundation = openFoundation({ dataDir });
  const link = foundation.links.create("owner@example.com", 100_000_000n);
  foundation.store.close();
  const canaries = ["canary-of-the-environment-51c3", "canary-of-the-model-server-88d0"];
  const host = `127.0.0.1:${shop.port}`;
  const start = () =>
    startBinary({
      ...options,
      dataDir,
      env: {
        ROOST_MODEL: "openai:mock",
        ROOST_OPENAI_BASE_URL: mock.url,
        ROOST_OPENAI_API_KEY: canaries[1] ?? "",
        // The model is the attacker: its answers may be as long as any.
        ROOST_ANSWER_TOKENS: "65536",
        ROOST_EGRESS: ["public", host, ...egress].join(),
        CANARY: canaries[0] ?? "",
        ...env,
      },
    });
  let server = await start();
  // As it is, and as it would be written.
  const masterKey = readFileSync(join(dataDir, "master.key"));
  canaries.push(masterKey.toString("base64"), masterKey.toString("hex"), masterKey.toString("latin1").trim());

  let token = "";
  const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    fetch(server.url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  const ask: World["ask"] = async (method, path, body) => {
    const response = await send(
      method,
      path,
      body,
      typeof body === "string" && path.includes("/files/") ? { "Content-Type": "text/plain" } : {},
    );
    const text = await response.text();
    return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text };
  };
  token = (await ask("POST", "/v1/auth/redeem-link", { link })).body.token;
  const newInstance = async (): Promise<string> =>
    (await ask("POST", "/v1/instances", { name: "one" })).body.instanceId;
  const instanceId = await newInstance();

  let seen = "";
  async function read(stream: EventStream, runId: string, afterId: number): Promise<Ran> {
    const frames = await stream.until(
      ({ id, event }) => id > afterId && (ENDINGS as readonly string[]).includes(event),
    );
    await stream.close();
    seen += stream.text();
    const results = frames.filter(({ event }) => event === "tool.completed").map(({ data }) => data.output as string);
    const approval = frames.findLast(({ event }) => event === "approval.requested")?.data.approval;
    return { runId, frames, ending: frames.at(-1)?.event as Ending, results, approval };
  }

  async function newAgent(tools: Record<string, string> = {}, of = instanceId): Promise<Agent> {
    const agents = `/v1/instances/${of}/agents`;
    const slug = `a${Bun.randomUUIDv7().slice(-12)}`;
    const { status, body } = await ask("POST", agents, { name: "Ada", slug, tools });
    if (status !== 201) throw new Error(JSON.stringify(body));
    const path = `${agents}/${body.agentId}`;
    const follow = async ({ runId, frames }: Pick<Ran, "runId" | "frames">) =>
      await read(readEvents(await send("GET", `${path}/events?runId=${runId}`)), runId, frames.at(-1)?.id ?? 0);
    const say = async (message: string, conversationId?: string) => {
      const response = await send(
        "POST",
        `${path}/messages`,
        { message, ...(conversationId === undefined ? {} : { conversationId }) },
        { Prefer: "respond-async" },
      );
      const { runId } = (await response.json()) as { runId: string };
      return await follow({ runId, frames: [] });
    };
    return {
      path,
      follow,
      say,
      run: (...steps) => say(scriptOf(steps)),
      async runAnew(...steps) {
        return await say(scriptOf(steps), (await ask("POST", `${path}/conversations`, {})).body.conversationId);
      },
    };
  }

  return {
    get server() {
      return server;
    },
    dataDir,
    instanceId,
    async restart() {
      await server.kill();
      server = await start();
    },
    ask,
    newAgent,
    decide: (approvalId, decision) => ask("POST", `/v1/approvals/${approvalId}/decision`, decision),
    shop: Object.assign(Object.create(shop), { url: `http://${host}`, host }),
    inside,
    canaries,
    warnings: () => [...new Set(told.match(/\[You have made this call \d+ times[^\]]*\]/g))].sort(),
    expectNothingLeaked(...more) {
      const places = { told, seen, logs: JSON.stringify(server.logs), errors: server.errors() };
      for (const [place, text] of Object.entries(places)) {
        for (const canary of [...canaries, ...more]) expect([place, text.includes(canary)]).toEqual([place, false]);
      }
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await mock.stop();
      shop.stop();
      inside.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The body of a request as it was on the wire. */
export const bodyOf = (request: string): string =>
  Buffer.from(request.slice(request.indexOf("\r\n\r\n") + 4), "latin1").toString();
