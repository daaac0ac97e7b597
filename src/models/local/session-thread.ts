/** A thread that verifies the embedded chat model and opens it, while the model process reads the tokenizer. */
import { join } from "node:path";
import { CHAT_MODEL, CHAT_MODEL_FILE, locateModelFiles } from "./files.ts";
import { type Handle, openOrtApi } from "./ort-api.ts";
import { openSession } from "./session.ts";

export interface SessionTask {
  cacheDir: string;
  threads: number;
}

export type SessionReply = { session: Handle } | { failed: string };

declare const self: Worker;

self.onmessage = async ({ data: { cacheDir, threads } }: MessageEvent<SessionTask>) => {
  self.postMessage(await open(cacheDir, threads).catch((error: unknown): SessionReply => ({ failed: String(error) })));
};

async function open(cacheDir: string, threads: number): Promise<SessionReply> {
  const files = await locateModelFiles(cacheDir);
  await files.verify("native/");
  await files.verify(`models/${CHAT_MODEL}/onnx/`);
  const file = join(files.modelsFolder, CHAT_MODEL, CHAT_MODEL_FILE);
  return { session: openSession(openOrtApi(files.library), file, threads) };
}
