/** A local engine with the real model, running from source, and shorthands for requests to it. */
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelEvent, ModelRequest } from "../../src/models/engine.ts";
import { createLocalEngine, type LocalEngineOptions } from "../../src/models/local.ts";
import { LOCAL_MODEL } from "../../src/models/local-models.ts";

const processFile = join(import.meta.dir, "model-process.ts");
export const processCommand = [process.execPath, "--no-env-file", processFile];
export const never = new AbortController().signal;

/** A log that a test can wait for lines of. */
export function createLogbook() {
  const lines: { message: string; fields: Record<string, unknown> }[] = [];
  const waiting: { message: string; resolve: () => void }[] = [];
  const write = (fields: Record<string, unknown>, message: string) => {
    lines.push({ message, fields });
    for (const { message: wanted, resolve } of waiting) if (message.includes(wanted)) resolve();
  };
  return {
    log: { info: write, warn: write },
    lines,
    /** Resolves when a line with this text is written, from now on. */
    next: (message: string) => new Promise<void>((resolve) => waiting.push({ message, resolve })),
  };
}

export function openLocalEngine(options: Partial<LocalEngineOptions> = {}) {
  const cacheDir = mkdtempSync(join(tmpdir(), "roost-local-"));
  const logbook = createLogbook();
  const engine = createLocalEngine({
    cacheDir,
    idleMs: 60_000,
    log: logbook.log,
    seed: 7,
    command: processCommand,
    ...options,
  });
  return {
    engine,
    logbook,
    async close() {
      await engine.close();
      await rm(cacheDir, { recursive: true, force: true });
    },
  };
}

export const SYSTEM = "You are Ada, a friendly librarian. You answer briefly and politely.";

export const chat = (user: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  model: LOCAL_MODEL,
  messages: [
    { role: "system", content: SYSTEM },
    { role: "user", content: user },
  ],
  tools: [],
  accountId: "acct_a",
  instanceId: "inst_a",
  temperature: 0,
  ...more,
});

export async function collect(batches: AsyncIterable<ModelEvent[]>): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const batch of batches) events.push(...batch);
  return events;
}

export const textOf = (events: ModelEvent[]): string =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("");
