import { afterAll, beforeAll, expect, test } from "bun:test";
import { handClock } from "../lib/hand-clock.ts";
import { type Conversation, startConversation } from "../messages/conversation.ts";

const TWO_HOURS = "7200";
let it: Conversation;
beforeAll(async () => {
  // On the last day of a month, two hours before its end.
  const clock = handClock(Date.parse("2026-01-31T22:00:00.000Z"));
  it = await startConversation({}, undefined, undefined, { clock });
});
afterAll(() => it.stop());

const limit = (modelLimits: object) => it.person.ask("PATCH", it.at(""), { modelLimits });

test.each([
  ["refused at once", { tokensPerDay: 15 }],
  // The answer alone would fit.
  ["whose run fails", { tokensPerMonth: 4_200 }],
])("a message %s may be tried again when the host's clock says that the limit ends", async (_, limits) => {
  await it.begin();
  await limit(limits);
  const { status, headers, body } = await it.send("hi");
  expect([status, body.error.code, headers.get("retry-after")]).toEqual([429, "budget_exceeded", TWO_HOURS]);
});

test("so may a completion whose limit is used up", async () => {
  await it.begin();
  await limit({ tokensPerMonth: 4_200 });
  const asked = { model: it.agent, messages: [{ role: "user", content: "hi" }] };
  const { status, headers } = await it.person.ask("POST", "/v1/chat/completions", asked);
  expect([status, headers.get("retry-after")]).toEqual([429, TWO_HOURS]);
});
