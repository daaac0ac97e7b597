import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openFoundation } from "../src/app/foundation.ts";
import { parseMoney } from "../src/lib/money.ts";
import { type RunningBinary, startBinary } from "../test/support/binary.ts";

/** The binary, running on a data folder that already holds an account. */
export interface BenchHost extends AsyncDisposable {
  server: RunningBinary;
  key: string;
  ask(method: string, path: string, body?: unknown): Promise<Record<string, string>>;
}

/** Starts `dist/roost` with the mock model server, or the settings given; an account with much credit has an API key. */
export async function startHost(env: Record<string, string> = {}): Promise<BenchHost> {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-bench-"));
  const server = await startBinary({ dataDir, env: { ROOST_LOG_LEVEL: "info", ...env } });
  const key = await makeKey(dataDir, server.url);
  return {
    server,
    key,
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
    async [Symbol.asyncDispose]() {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function makeKey(dataDir: string, url: string): Promise<string> {
  const { store, links } = openFoundation({ dataDir });
  const link = links.create("bench@example.com", parseMoney("100000") ?? 0n);
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

/** The mock model server in a process of its own: every answer at once. */
export async function startMock(): Promise<{ url: string } & AsyncDisposable> {
  const script = resolve(import.meta.dir, "../test/support/mock-model-server.ts");
  const child = Bun.spawn([process.execPath, script, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const url = /http:\/\/\S+/.exec(new TextDecoder().decode(value))?.[0];
  if (!url) throw new Error("the mock model server did not say where it listens");
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}
