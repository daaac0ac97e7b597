/**
 * The model process: only such a one holds models. One writes answers, another computes vectors, which the first asks for
 * through the host. It talks to its host over IPC, stores nothing, and may be killed at any time. It ends when the channel
 * closes, so it cannot outlive a host that was killed.
 */

import { setPriority } from "node:os";
import { messageOf } from "../../lib/message-of.ts";
import { volunteerForOutOfMemory } from "../../lib/out-of-memory.ts";
import type { ChatModel } from "./chat-model.ts";
import { openEmbeddedChat } from "./embedded-chat.ts";
import { type Embed, openEmbedder } from "./embedder.ts";
import { locateModelFiles, type ModelFiles } from "./files.ts";
import type { HostToModel, ModelToHost, ProcessSettings } from "./protocol.ts";

/** Lower priority than the host, which answers requests while the model computes. Threads started later inherit it. */
const NICE = 5;
/** After any script, which has 1,000. */
const OUT_OF_MEMORY_POINTS = 500;

/** Runs this process in the role `model-process`, until the host closes the channel. */
export function runModelProcess(): Promise<never> {
  setPriority(NICE);
  volunteerForOutOfMemory(OUT_OF_MEMORY_POINTS);
  process.on("disconnect", () => process.exit(0));
  // Sent to the whole group, they stop the host, which ends this process once nothing needs it any more.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
  if (!process.connected) throw new Error("the model process is started by the server, not by hand: run `roost serve`");

  let parts: Parts | undefined;
  process.on("message", (message: HostToModel) => {
    if (message.type === "start") parts = createParts(message.settings);
    else if (message.type === "vectors") receiveVectors(message);
    else if (parts !== undefined) void handle(message, parts);
  });
  return new Promise<never>(() => {});
}

interface Parts {
  settings: ProcessSettings;
  files(): Promise<ModelFiles>;
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
  const embed = once<Embed>(async () => {
    const opened = await openEmbedder(await files(), settings.threads);
    Bun.gc(true); // frees what reading the tokenizer left behind
    return opened;
  });
  const { model } = settings;
  const chat = once<ChatModel>(async () =>
    model === undefined
      ? openEmbeddedChat(await files(), settings, send, askForVectors)
      : (await import("./added-chat.ts")).openAddedChat(await files(), settings, model, send),
  );
  return { settings, files, chat, embed };
}

async function handle(message: Exclude<HostToModel, { type: "start" | "vectors" }>, parts: Parts): Promise<void> {
  let loading = true;
  try {
    switch (message.type) {
      case "generate": {
        const chat = await parts.chat();
        loading = false;
        chat.generate(message);
        return;
      }
      case "cancel":
        (await parts.chat()).cancel(message.id);
        return;
      case "embed": {
        const embed = await parts.embed();
        loading = false;
        const counts: number[] = [];
        const vectors = await embed(message.texts, (count) => void counts.push(count));
        send({ type: "embedded", id: message.id, vectors, tokens: counts.reduce((sum, count) => sum + count, 0) });
        return;
      }
      case "try": {
        const { model } = parts.settings;
        if (model === undefined) throw new Error("there is no model to try");
        const { tryModel } = await import("./added-chat.ts");
        const found = await tryModel(await parts.files(), parts.settings, model, message.shape);
        send({ type: "tried", id: message.id, ...found });
        return;
      }
    }
  } catch (error) {
    if (message.type === "cancel") return; // what it would have cancelled has failed
    const reason = messageOf(error);
    send({ type: "failed", id: message.id, message: reason, ...(loading ? { loading } : {}) });
  }
}

/** What was asked for and has not come. */
const asking = new Map<number, { resolve(vectors: Float32Array[]): void; reject(error: Error): void }>();
let lastAsked = 0;

const askForVectors: Embed = (texts) =>
  new Promise((resolve, reject) => {
    asking.set(++lastAsked, { resolve, reject });
    send({ type: "ask", asked: lastAsked, texts: [...texts] });
  });

function receiveVectors({ asked, vectors, reason }: Extract<HostToModel, { type: "vectors" }>): void {
  const one = asking.get(asked);
  asking.delete(asked);
  if (reason === undefined) one?.resolve(vectors);
  else one?.reject(new Error(reason));
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
