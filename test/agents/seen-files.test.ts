import { expect, test } from "bun:test";
import { createAgentFiles } from "../../src/agents/agent-files.ts";
import type { Preconditions } from "../../src/agents/preconditions.ts";
import type { ToolContext } from "../../src/tools/tool.ts";

const ETAG = '"as it was read"';

test("an account whose runs read many files makes no other's run read a file again", async () => {
  const conditions: Preconditions[] = [];
  // Only what a run has read is looked at: the disk would take minutes for so many.
  const parts = {
    store: {},
    instances: { find: (instanceId: string) => ({ accountId: `account of ${instanceId}` }) },
    agents: {
      find: (agentId: string) => ({ agentId, instanceId: agentId }),
      async writeFile(_find: unknown, _name: string, _bytes: Uint8Array, condition: Preconditions) {
        conditions.push(condition);
        return { created: false, etag: ETAG };
      },
    },
    workspaces: { read: () => ({ bytes: Buffer.from("text"), etag: ETAG }), taintedOf: () => [] },
    spend: <T>(_instanceId: string, work: () => T) => work(),
  } as unknown as Parameters<typeof createAgentFiles>[0];
  const files = createAgentFiles(parts);
  const run = (whose: string, runId: string) =>
    ({ instanceId: whose, agentId: whose, conversationId: "", runId, isTainted: false }) as unknown as ToolContext;

  files.read(run("ada", "run"), "a.md");
  for (let at = 0; at < 50_000; at++) files.read(run("bob", `run ${at}`), "b.md");
  await files.write(run("ada", "run"), "a.md", "new");
  expect(conditions).toEqual([{ ifMatch: ETAG, ifNoneMatch: null }]);
});
