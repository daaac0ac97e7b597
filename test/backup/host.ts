import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { type RunningBinary, runBinary, type StartOptions, startBinary } from "../support/binary.ts";

/** Somebody on a running host, with an instance. */
export interface Host extends AsyncDisposable {
  folder: string;
  dataDir: string;
  server: RunningBinary;
  instanceId: string;
  ask: Ask;
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
export type Ask = (method: string, path: string, body?: object | string) => Promise<{ status: number; body: any }>;

export const askAt =
  (url: string, token: () => string): Ask =>
  async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        Authorization: `Bearer ${token()}`,
        ...(typeof body === "object" ? { "Content-Type": "application/json" } : {}),
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text };
  };

export async function startHost(options: StartOptions = {}): Promise<Host & { token: string }> {
  const folder = mkdtempSync(join(tmpdir(), "roost-backup-"));
  const dataDir = join(folder, "data");
  const foundation = openFoundation({ dataDir });
  const link = foundation.links.create("ada@example.org", 100_000_000n);
  foundation.store.close();
  const server = await startBinary({ ...options, dataDir });
  let token = "";
  const ask = askAt(server.url, () => token);
  token = (await ask("POST", "/v1/auth/redeem-link", { link })).body.token;
  const { instanceId } = (await ask("POST", "/v1/instances", { name: "home" })).body;
  return {
    folder,
    dataDir,
    server,
    instanceId,
    token,
    ask,
    async [Symbol.asyncDispose]() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const backup = (words: string[], env: Record<string, string> = {}) => runBinary(["backup", ...words], { env });
