/** A model server that answers at once; a message with "hang" never, and one with "loop" with four endless scripts. */
import { startMockModelServer } from "../test/support/mock-model-server.ts";

const { url } = startMockModelServer({
  record: false,
  answer({ body }) {
    const asked = JSON.stringify(body.messages.at(-1));
    if (asked.includes("hang")) return { kind: "hang" };
    if (asked.includes("loop")) {
      const calls = [1, 2, 3, 4].map((n) => ({ name: "run_javascript", arguments: { code: `for (;;); // ${n}` } }));
      return { kind: "tools", calls };
    }
    return { kind: "text", tokens: ["Hello", " there", "."], usage: { prompt_tokens: 12, completion_tokens: 3 } };
  },
});
console.log(url);
