/** A model process that ends every answer before it has begun. */
import type { HostToModel, ModelToHost } from "../../src/models/local/protocol.ts";

const send = (message: ModelToHost) => void process.send?.(message);

process.on("disconnect", () => process.exit(0));
process.on("message", (message: HostToModel) => {
  if (message.type !== "generate") return;
  const { id } = message;
  send({ type: "started", id, promptTokens: 1, cachedTokens: 0 });
  send({ type: "done", id, completionTokens: 0, reason: "stop" });
});
