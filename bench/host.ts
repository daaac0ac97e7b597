import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openFoundation } from "../src/app/foundation.ts";
import { loadConfig } from "../src/config.ts";
import { parseMoney } from "../src/lib/money.ts";
import { type RunningBinary, startBinary } from "../test/support/binary.ts";

/** Settings without the limits that keep a single account from using the whole host. */
const NO_LIMITS = {
  ROOST_READS_PER_SECOND: "1000000",
  ROOST_WRITES_PER_SECOND: "1000000",
  ROOST_MAX_STREAMS: "20000",
  ROOST_MAX_INSTANCES: "100000",
  ROOST_MAX_AGENTS: "1000000",
};

const { config: defaults } = loadConfig({});

/** The defaults, where `startBinary` sets others. */
const DEFAULT_LIMITS = {
  ROOST_ADDRESS_REQUESTS: String(defaults.addressRequests),
  ROOST_ADDRESS_REFUSALS: String(defaults.addressRefusals),
};

/** The binary, running on a data folder that already holds an account. */
export interface BenchHost extends AsyncDisposable {
  readonly server: RunningBinary;
  key: string;
  dataDir: string;
  /** Another account with much credit; returns its API key. */
  signUp(email: string): Promise<string>;
  ask(method: string, path: string, body?: unknown): Promise<Record<string, string>>;
  /** Stops the server and starts it again on the same folder; returns the milliseconds until its first 200. */
  restart(between?: () => void): Promise<number>;
}

/**
 * Starts `dist/roost` with the settings given; an account with much credit has an API key. Its limits are lifted,
 * unless `limits` is `"kept"`.
 */
export async function startHost(
  env: Record<string, string> = {},
  limits: "lifted" | "kept" = "lifted",
): Promise<BenchHost> {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-bench-"));
  const lifted = limits === "lifted" ? NO_LIMITS : DEFAULT_LIMITS;
  const start = () => startBinary({ dataDir, env: { ROOST_LOG_LEVEL: "info", ...lifted, ...env } });
  let server = await start();
  const key = await makeKey(dataDir, server.url, "bench@example.com");
  return {
    get server() {
      return server;
    },
    key,
    dataDir,
    signUp: (email) => makeKey(dataDir, server.url, email),
    async ask(method, path, body) {
      const response = await fetch(new URL(path, server.url), {
        method,
        headers: { "X-API-Key": key, "Content-Type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const answer = (await response.json()) as Record<string, string>;
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
      return answer;
    },
    async restart(between) {
      await server.stop();
      between?.();
      const begun = performance.now();
      server = await start();
      await fetch(new URL("/healthz", server.url));
      return performance.now() - begun;
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function makeKey(dataDir: string, url: string, email: string): Promise<string> {
  const { store, links } = openFoundation({ dataDir });
  const link = links.create(email, parseMoney("100000") ?? 0n);
  store.close();
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(new URL(path, url), {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return (await response.json()) as Record<string, string>;
  };
  const { token } = await post("/v1/auth/redeem-link", { link });
  const { key } = await post("/v1/auth/keys", {}, { Authorization: `Bearer ${token}` });
  if (!key) throw new Error("the bench could not make an API key");
  return key;
}

/**
 * The mock model server in a process of its own; it answers at once unless another script is given. `hosts` are all that
 * it listens at.
 */
export async function startMock(
  script = "../test/support/mock-model-server.ts",
): Promise<{ url: string; hosts: string[]; pid: number } & AsyncDisposable> {
  const path = resolve(import.meta.dir, script);
  const child = Bun.spawn([process.execPath, path, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const urls = new TextDecoder().decode(value).match(/http:\/\/\S+/g) ?? [];
  const [url] = urls;
  if (!url) throw new Error("the mock model server did not say where it listens");
  return {
    url,
    hosts: urls.map((each) => new URL(each).host),
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}
