import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../src/lib/log.ts";
import { createSearchThread, IndexTroubleError } from "../../src/memory/search-thread.ts";

test("a search ends where the indexes' thread says nothing any more, and so does all that waits behind it", async () => {
  const address = new URL("./silent-worker.ts", import.meta.url).href;
  const thread = createSearchThread(tmpdir(), await createLog("silent", "json"), { address, stuckMs: 50 });
  const all = [1, 2].map(() => thread.ask({ type: "rebuild", agentId: "agt_a" }));
  for (const result of await Promise.allSettled(all)) {
    expect(result).toMatchObject({ status: "rejected", reason: { message: "the memory's index could not be read" } });
  }
  thread.close();
});

test("what the disk of the indexes does not serve is told as their trouble, not as the text's", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-thread-"));
  const thread = createSearchThread(folder, await createLog("silent", "json"));
  await thread.ask({ type: "rebuild", agentId: "agt_a" });
  rmSync(folder, { recursive: true });
  const [result] = await Promise.allSettled([thread.ask({ type: "rebuild", agentId: "agt_b" })]);
  expect(result).toMatchObject({ status: "rejected", reason: { message: expect.stringContaining("ENOENT") } });
  expect(result).toMatchObject({ reason: expect.any(IndexTroubleError) });
  thread.close();
});
