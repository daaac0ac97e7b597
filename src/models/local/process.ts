/**
 * The model process, the only one that holds models. It talks to its host over IPC, stores nothing, and may be killed
 * at any time. It ends when the channel closes, so it cannot outlive a host that was killed.
 */
import { setPriority } from "node:os";
import { type ChatModel, openChatModel } from "./chat-model.ts";
import { type Embed, openEmbedder } from "./embedder.ts";
import { locateModelFiles, type ModelFiles } from "./files.ts";
import type { HostToModel, ModelToHost, ProcessSettings } from "./protocol.ts";

/** Lower priority than the host, which answers requests while the model computes. Threads started later inherit it. */
const NICE = 5;

/** Runs this process in the role `model-process`, until the host closes the channel. */
export function runModelProcess(): Promise<never> {
  setPriority(NICE);
  process.on("disconnect", () => process.exit(0));
  if (!process.connected) throw new Error("the model process is started by the server, not by hand: run `roost serve`");

  let parts: Parts | undefined;
  process.on("message", (message: HostToModel) => {
    if (message.type === "start") parts = createParts(message.settings);
    else if (parts !== undefined) void handle(message, parts);
  });
  return new Promise<never>(() => {});
}

interface Parts {
  chat(): Promise<ChatModel>;
  embed(): Promise<Embed>;
}

/** Each model is loaded once, when it is first needed; after a failure, the next request tries again. */
function createParts(settings: ProcessSettings): Parts {
  const files = once<ModelFiles>(async () => {
    const located = await locateModelFiles(settings.cacheDir);
    send({ type: "ready" });
    return located;
  });
  void files().catch(() => {}); // starts at once; a failure is reported to the requests that need the files
  const embed = once<Embed>(async () => openEmbedder(await files(), settings.threads));
  return { chat: once(async () => openChatModel(await files(), settings, send, embed)), embed };
}

async function handle(message: Exclude<HostToModel, { type: "start" }>, parts: Parts): Promise<void> {
  try {
    switch (message.type) {
      case "generate":
        (await parts.chat()).generate(message);
        return;
      case "cancel":
        (await parts.chat()).cancel(message.id);
        return;
      case "embed": {
        const embed = await parts.embed();
        const counts: number[] = [];
        const vectors = await embed(message.texts, (count) => void counts.push(count));
        send({ type: "embedded", id: message.id, vectors, tokens: counts.reduce((sum, count) => sum + count, 0) });
        return;
      }
    }
  } catch (error) {
    if ("id" in message) send({ type: "failed", id: message.id, message: String(error) });
  }
}

function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}

function send(message: ModelToHost): void {
  if (process.connected) process.send?.(message);
}
