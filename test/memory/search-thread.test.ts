import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { createLog } from "../../src/lib/log.ts";
import { createSearchThread } from "../../src/memory/search-thread.ts";

test("a search ends where the indexes' thread says nothing any more, and so does all that waits behind it", async () => {
  const address = new URL("./silent-worker.ts", import.meta.url).href;
  const thread = createSearchThread(tmpdir(), await createLog("silent", "json"), { address, stuckMs: 50 });
  const all = [1, 2].map(() => thread.ask({ type: "rebuild", agentId: "agt_a" }));
  for (const result of await Promise.allSettled(all)) {
    expect(result).toMatchObject({ status: "rejected", reason: { message: "the memory's index could not be read" } });
  }
  thread.close();
});
