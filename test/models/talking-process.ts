/** A model process that writes a token every few milliseconds, up to the request's maximum. */
import type { HostToModel, ModelToHost } from "../../src/models/local/protocol.ts";

const send = (message: ModelToHost) => void process.send?.(message);
let talking: Timer | undefined;
let talked = 0;

process.on("disconnect", () => process.exit(0));
process.on("message", (message: HostToModel) => {
  if (message.type !== "generate") return;
  const { id, maxTokens } = message;
  send({ type: "started", id, promptTokens: 1, cachedTokens: 0 });
  talking = setInterval(() => {
    send({ type: "text", id, text: "." });
    if (++talked < maxTokens) return;
    clearInterval(talking);
    send({ type: "done", id, completionTokens: talked, reason: "length" });
  }, 5);
});
