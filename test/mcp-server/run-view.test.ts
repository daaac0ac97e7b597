import { expect, test } from "bun:test";
import { createRunViews } from "../../src/mcp-server/run-view.ts";
import type { Run } from "../../src/messages/schema.ts";

test("whoever waits for a run that waits for a person already is told at once", async () => {
  const views = createRunViews({
    get: () => ({ status: "waiting" }) as Run,
    whenEnded: () => new Promise(() => {}),
    listen() {},
  });
  expect(await views.settled("agt_1", "run_1", new AbortController().signal)).toBeUndefined();
});
