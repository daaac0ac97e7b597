import { expect, mock, test } from "bun:test";
import { createRunViews } from "../../src/mcp-server/run-view.ts";
import type { Run } from "../../src/messages/schema.ts";

test("whoever waits for a run that waits for a person already is told at once", async () => {
  const views = createRunViews({
    get: () => ({ status: "waiting", waitingKind: "approval" }) as Run,
    waitFor: () => ({ ended: new Promise(() => {}), leave() {} }),
    listen() {},
  });
  expect(await views.settled("agt_1", "run_1", new AbortController().signal)).toBeUndefined();
});

test("whoever has left waits for the run's end no longer", async () => {
  const leave = mock(() => {});
  const views = createRunViews({
    get: () => ({ status: "running" }) as Run,
    waitFor: () => ({ ended: new Promise(() => {}), leave }),
    listen() {},
  });
  const leaving = new AbortController();
  const settled = views.settled("agt_1", "run_1", leaving.signal);
  expect(leave).not.toHaveBeenCalled();
  leaving.abort();
  await settled;
  expect(leave).toHaveBeenCalledTimes(1);
});
