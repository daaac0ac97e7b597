import { afterAll, expect, test } from "bun:test";
import { createSchemaCheck } from "../../src/lib/json-schema.ts";
import { LOCAL_MODEL } from "../../src/models/local-models.ts";
import { never, openLocalEngine } from "./local-setting.ts";

const { engine, close } = openLocalEngine();
afterAll(close);

const person = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 40 },
    age: { type: "integer", minimum: 0 },
    likes: { type: "array", items: { enum: ["tea", "coffee", "milk"] }, minItems: 1, maxItems: 2 },
  },
  required: ["name", "age", "likes"],
  additionalProperties: false,
};
const mood = { type: "object", properties: { mood: { enum: ["glad", "sad"] } }, required: ["mood"] };

test.each([
  ["Describe Ada, who is 36 years old and likes tea.", person],
  ["Describe somebody.", person],
  ["Wie fühlst du dich?", mood],
  ['Say "hello" and nothing else.', mood],
])("whatever it is asked, the embedded model answers with JSON that fits: %s", async (content, schema) => {
  const wanted = `Answer in JSON of this schema: ${JSON.stringify(schema)}`;
  let text = "";
  let finish: string | undefined;
  const request = {
    model: LOCAL_MODEL,
    messages: [
      { role: "system" as const, content: wanted },
      { role: "user" as const, content },
    ],
    tools: [],
    accountId: "acct_a",
    instanceId: "inst_a",
    output: { name: "answer", schema },
  };
  for await (const events of engine.stream(request, never)) {
    for (const event of events) {
      if (event.type === "text") text += event.text;
      if (event.type === "finish") finish = event.reason;
    }
  }
  expect([text, finish, createSchemaCheck(schema)(JSON.parse(text))]).toEqual([text, "stop", null]);
});
