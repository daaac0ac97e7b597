/** A model server that answers at once, but never answers a message with the word "hang". */
import { startMockModelServer } from "../test/support/mock-model-server.ts";

const { url } = startMockModelServer({
  record: false,
  answer: ({ body }) =>
    JSON.stringify(body.messages.at(-1)).includes("hang")
      ? { kind: "hang" }
      : { kind: "text", tokens: ["Hello", " there", "."], usage: { prompt_tokens: 12, completion_tokens: 3 } },
});
console.log(url);
