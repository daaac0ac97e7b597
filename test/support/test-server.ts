import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Foundation, openFoundation } from "../../src/app/foundation.ts";
import { type App, bindAddress, startApp } from "../../src/app/start.ts";
import { type Config, loadConfig } from "../../src/config.ts";
import { openApiDocument } from "../../src/http/openapi.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { lazily } from "../../src/lib/lazily.ts";
import { createLog, type Log } from "../../src/lib/log.ts";
import { parseMoney } from "../../src/lib/money.ts";
import { probeLevel } from "../../src/sandbox/probe.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { NO_NODES } from "./no-nodes.ts";
import { ONE_ADDRESS } from "./one-address.ts";
import { type OpenApi, type OpenApiCheck, openApiCheck } from "./openapi-check.ts";

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
  body: any;
}

export interface Ask {
  key?: string;
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Person {
  email: string;
  accountId: string;
  token: string;
  /** Calls the API as this account. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  fetch(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
}

/** The whole server in this process, on a real port and a real data folder. */
export interface TestServer {
  url: string;
  app: App;
  config: Config;
  foundation: Foundation;
  dataDir: string;
  ask(method: string, path: string, ask?: Ask): Promise<Answer>;
  /** Signs up over HTTP with an invite and a mailed code; the account gets this credit. */
  signUp(email?: string, credit?: string): Promise<Person>;
  /** Restarts the server on the same folder and another port. `meanwhile` is done while none runs. */
  restart(meanwhile?: () => void): Promise<void>;
  stop(): Promise<void>;
}

let people = 0;
/** Once for all servers of this process: a machine does not change. */
const probeSandbox = lazily(probeLevel);
/** Longer than the usual second or two, which a busy machine may take. */
const [OLLAMA_DEADLINE_MS, PAYMENT_DEADLINE_MS] = [60_000, 60_000];
/** Compiled once: every server has the same routes. */
let checkAnswer: OpenApiCheck | undefined;

export async function startTestServer(
  settings: Record<string, string> = {},
  {
    clock = systemClock,
    dataDir = mkdtempSync(join(tmpdir(), "roost-test-")),
    log,
    ollamaUrl = "http://127.0.0.1:9/v1",
    tools: only,
    moreTools: more,
    mcpWaitMs,
    hangs = false,
  }: {
    clock?: Clock;
    dataDir?: string;
    log?: Log;
    ollamaUrl?: string;
    /** In place of Roost's own. */
    tools?: readonly Tool[];
    /** Beside them. */
    moreTools?: readonly Tool[];
    mcpWaitMs?: number;
    /** Whether a chain's nodes or the facilitator never answer: then they are waited for as long as in the product. */
    hangs?: boolean;
  } = {},
): Promise<TestServer> {
  const { config } = loadConfig({
    ROOST_PORT: "0",
    ROOST_LOG_LEVEL: "silent",
    ROOST_DATA_DIR: dataDir,
    ...NO_NODES,
    ...ONE_ADDRESS,
    // On a busy machine, each read uses up much; and a clock that a test holds never gives it back.
    ROOST_READS_PER_SECOND: "1000000",
    ...settings,
  });
  const open = async () => {
    const foundation = openFoundation(config, clock);
    const told = log ?? (await createLog(config.logLevel, "json"));
    return {
      foundation,
      app: await startApp(bindAddress(config, told), config, foundation, told, {
        ollama: { baseUrl: ollamaUrl, deadlineMs: OLLAMA_DEADLINE_MS },
        mcpWaitMs,
        paymentDeadlineMs: hangs ? undefined : PAYMENT_DEADLINE_MS,
        tidiesOnlyWhenTold: true,
        tools: { only, more },
        probeSandbox,
      }),
    };
  };
  let { foundation, app } = await open();
  const close = async () => {
    const isWhole = await app.stop();
    foundation.store.close();
    if (!isWhole) throw new Error("a part of the server did not stop as it should; its log says which");
  };

  async function send(method: string, path: string, { key, token, body, headers = {} }: Ask): Promise<Response> {
    const all: Record<string, string> = { ...headers };
    if (key !== undefined) all["X-API-Key"] = key;
    if (token !== undefined) all.Authorization = `Bearer ${token}`;
    const raw = typeof body === "string" || body instanceof Uint8Array;
    if (body !== undefined && !raw) all["Content-Type"] ??= "application/json";
    const url = new URL(path, app.url);
    const response = await fetch(url, {
      method,
      headers: all,
      ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
    });
    const streams = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    checkAnswer ??= openApiCheck(openApiDocument(app.routes, "test") as unknown as OpenApi);
    checkAnswer({
      method,
      path: url.pathname + url.search,
      status: response.status,
      headers: response.headers,
      body: streams ? null : await response.clone().text(),
    });
    return response;
  }

  async function ask(method: string, path: string, options: Ask = {}): Promise<Answer> {
    const response = await send(method, path, options);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") === true && text !== "";
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  async function signUp(email = `person${++people}@example.com`, credit = "10.00"): Promise<Person> {
    const { code } = foundation.invites.create({ uses: 1, credit: parseMoney(credit) ?? 0n, lifeMs: 3_600_000 });
    // The limit on codes per address is not meant for tests, which all sign up from one address.
    foundation.store.transaction(() => foundation.store.sqlite.run("UPDATE sign_in_codes SET address = 'test'"));
    await ask("POST", "/v1/auth/send-code", { body: { email, inviteCode: code } });
    const mailed = foundation.outbox.list().find(({ to }) => to === email)?.code;
    const { body } = await ask("POST", "/v1/auth/verify-code", { body: { email, code: mailed } });
    const token: string = body.token;
    return {
      email,
      accountId: body.account.accountId,
      token,
      ask: (method, path, asked, headers = {}) =>
        ask(method, path, { token, headers, ...(asked === undefined ? {} : { body: asked }) }),
      fetch: (method, path, asked, headers = {}) =>
        send(method, path, { token, headers, ...(asked === undefined ? {} : { body: asked }) }),
    };
  }

  return {
    get url() {
      return app.url;
    },
    get app() {
      return app;
    },
    get foundation() {
      return foundation;
    },
    config,
    dataDir,
    ask,
    signUp,
    async restart(meanwhile = () => {}) {
      await close();
      meanwhile();
      ({ foundation, app } = await open());
    },
    async stop() {
      await close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
