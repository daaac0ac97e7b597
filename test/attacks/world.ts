import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { type RunningBinary, type StartOptions, startBinary } from "../support/binary.ts";
import { type MockAnswer, type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import type { Answer } from "../support/test-server.ts";

/** An account with an API key that has all scopes. */
export interface Account {
  email: string;
  key: string;
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  newInstance(name?: string): Promise<string>;
  /** Returns the agent's path. */
  newAgent(instanceId: string, input?: object): Promise<string>;
}

/** The binary with its default limits, an attacker, and a quiet neighbour who uses it all the time. */
export interface World extends AsyncDisposable {
  url: string;
  dataDir: string;
  server: RunningBinary;
  mock: MockModelServer;
  attacker: Account;
  neighbour: Account;
  /** The agent that the neighbour chats with. */
  neighboursAgent: string;
  /** Runs the attack while the neighbour continues to get answers. */
  attack<T>(work: () => Promise<T>): Promise<T>;
  /** Checks that the neighbour got every answer, that memory stayed within bounds, and that the host stops cleanly. */
  expectUnharmed(options?: { mostMiB?: number }): Promise<void>;
}

/** The default limits of an address, which other tests lift. */
const OWN_LIMITS = { ROOST_ADDRESS_REQUESTS: "300", ROOST_ADDRESS_REFUSALS: "30" };
/** A message with this word is never answered by the model. */
export const HANG = "hang";
/** For a message that begins with this, the model runs the rest as JavaScript, four times at once. */
export const SCRIPT = "script:";
const CALL = "call:";
const MAX_MIB = 150;
const PAUSE_MS = 10;
/** The least rounds of the neighbour during each attack, however short that is. */
const LEAST_ROUNDS = 3;
/** Far more than anybody waits: this is no measurement, only an end. */
const PATIENCE_MS = 60_000;

/** `owner`: the user that the host runs as, if `under` changes it. */
export async function startWorld({ owner, env, ...options }: StartOptions & { owner?: number } = {}): Promise<World> {
  const dataDir = await mkdtemp(join(tmpdir(), "roost-attack-"));
  const mock = startMockModelServer({ record: false, answer: answerOf });
  const links = makeLinks(dataDir, ["attacker@example.com", "neighbour@example.com"]);
  if (owner !== undefined) await chownAll(dataDir, owner);
  const server = await startBinary({
    ...options,
    dataDir,
    env: { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url, ...OWN_LIMITS, ...env },
  });
  const { url } = server;
  const [attacker, neighbour] = await Promise.all(links.map((link) => signIn(url, link)));
  if (!attacker || !neighbour) throw new Error("two accounts were asked for");
  const instance = await neighbour.newInstance();
  const agent = await neighbour.newAgent(instance);
  const quiet = startNeighbour(url, neighbour, instance, agent);
  // What a host takes that is used at all is not what an attack takes.
  await quiet.more();
  const before = memory(server.process.pid, "VmRSS");
  let stopped: Promise<number> | undefined;
  const stop = async () => {
    await quiet.stop();
    stopped ??= server.stop();
    return await stopped;
  };
  return {
    url,
    dataDir,
    server,
    mock,
    attacker,
    neighbour,
    neighboursAgent: agent,
    async attack(work) {
      const since = quiet.rounds();
      const result = await work();
      await quiet.more(since);
      return result;
    },
    async expectUnharmed({ mostMiB = MAX_MIB } = {}) {
      await quiet.more();
      const grown = memory(server.process.pid, "VmHWM") - before;
      const exit = await stop();
      const errors = server.logs.filter(({ level }) => level === "error" || level === "fatal");
      expect({ refused: quiet.refused.slice(0, 3), errors: errors.slice(0, 3), exit }).toEqual({
        refused: [],
        errors: [],
        exit: 0,
      });
      expect(grown).toBeLessThan(mostMiB);
    },
    async [Symbol.asyncDispose]() {
      await stop().finally(() => mock.stop());
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** How many more windows of a minute may have begun since then: none within half a minute. */
export function windowsSince(atMs: number): number {
  const minutes = (Date.now() - atMs) / 60_000;
  return minutes < 0.5 ? 0 : Math.ceil(minutes);
}

/** A message that makes the model call this tool, and answer with its result. */
export const callOf = (name: string, input: object): string =>
  CALL + Buffer.from(JSON.stringify([name, input])).toString("base64");

function answerOf({ body }: { body: { messages: { role: string; content: string }[] } }): MockAnswer {
  const last = body.messages.at(-1);
  if (last?.role === "user" && last.content.startsWith(SCRIPT)) {
    const code = last.content.slice(SCRIPT.length);
    const calls = [1, 2, 3, 4].map((n) => ({ name: "run_javascript", arguments: { code: `${code} // ${n}` } }));
    return { kind: "tools", calls };
  }
  // Whoever else put words around it.
  const [, told] = (last?.role === "user" && /call:([\w+/=]+)/.exec(last.content)) || [];
  if (told !== undefined) {
    const [name, input] = JSON.parse(Buffer.from(told, "base64").toString());
    return { kind: "tools", calls: [{ name, arguments: input }] };
  }
  if (last?.role === "tool") return { kind: "text", tokens: [last.content] };
  return JSON.stringify(last).includes(HANG) ? { kind: "hang" } : { kind: "text", tokens: ["Hello", "."] };
}

/** Sign-in links, created by the operator before the host starts. */
function makeLinks(dataDir: string, emails: string[]): string[] {
  const { store, links } = openFoundation({ dataDir });
  try {
    return emails.map((email) => links.create(email, 100_000_000n));
  } finally {
    store.close();
  }
}

async function chownAll(folder: string, owner: number): Promise<void> {
  await chown(folder, owner, owner);
  for await (const path of new Bun.Glob("**/*").scan({ cwd: folder, dot: true, onlyFiles: false })) {
    await chown(join(folder, path), owner, owner);
  }
}

async function signIn(url: string, link: string): Promise<Account> {
  const { body } = await ask(url, "POST", "/v1/auth/redeem-link", { link });
  const bearer = { Authorization: `Bearer ${body.token}` };
  const { key } = (await ask(url, "POST", "/v1/auth/keys", {}, bearer)).body;
  const account: Account = {
    email: body.account.email,
    key,
    ask: (method, path, body, headers = {}) => ask(url, method, path, body, { "X-API-Key": key, ...headers }),
    async newInstance(name = "one") {
      return (await account.ask("POST", "/v1/instances", { name })).body.instanceId;
    },
    async newAgent(instanceId, input = { name: "Ada" }) {
      const { body } = await account.ask("POST", `/v1/instances/${instanceId}/agents`, input);
      return `/v1/instances/${instanceId}/agents/${body.agentId}`;
    },
  };
  return account;
}

/** Text is sent as it is, anything else as JSON. */
export async function ask(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Answer> {
  const response = await fetch(new URL(path, url), {
    method,
    ...(signal ? { signal } : {}),
    headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") === true;
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

/** Reads and chats, one request after the other, far below its own limits. */
function startNeighbour(url: string, account: Account, instance: string, agent: string) {
  const requests = [
    ["GET", `/v1/instances/${instance}`],
    ["GET", `/v1/instances/${instance}/agents`],
    ["GET", agent],
    ["POST", `${agent}/messages`, { message: "Hello" }],
  ] as const;
  const refused: string[] = [];
  let rounds = 0;
  let goesOn = true;
  const running = (async () => {
    for (; goesOn; rounds++) {
      for (const [method, path, body] of requests) {
        const patience = AbortSignal.timeout(PATIENCE_MS);
        const { status, body: answer } = await ask(url, method, path, body, { "X-API-Key": account.key }, patience);
        if (status < 200 || status > 299) refused.push(`${method} ${path}: ${status} ${JSON.stringify(answer)}`);
      }
      await Bun.sleep(PAUSE_MS); // so that it stays quiet
    }
  })();
  running.catch((error: unknown) => refused.push(String(error)));
  return {
    refused,
    rounds: () => rounds,
    /** Resolves a few rounds after that one. */
    async more(since = rounds) {
      const enough = since + LEAST_ROUNDS;
      while (rounds < enough && refused.length === 0) await Bun.sleep(PAUSE_MS);
    },
    async stop() {
      goesOn = false;
      await running.catch(() => {});
    },
  };
}

/** Resident memory of a process in MiB, now or at its peak (Linux; elsewhere 0). */
function memory(pid: number, which: "VmRSS" | "VmHWM"): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(new RegExp(`${which}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
