import { approvalQueries } from "../../src/approvals/queries.ts";
import { hashOfJson } from "../../src/lib/canonical-json.ts";
import { newId } from "../../src/lib/id.ts";
import type { TestServer } from "./test-server.ts";

/** An open approval of this agent, of a run that nobody has started; its id. */
export function storeApproval(
  { foundation: { store, clock } }: TestServer,
  whose: { accountId: string; instanceId: string; agentId: string },
): string {
  const approvalId = newId("appr");
  const now = clock.now();
  const nothing = { questions: null, answers: null, note: null, decidedBy: null, decidedAt: null };
  store.transaction(() =>
    approvalQueries(store.db).insert({
      ...{ ...whose, ...nothing, approvalId, kind: "tool", status: "open", tool: "mail", input: "{}" },
      ...{ inputHash: hashOfJson({}), basis: null, tainted: false, runId: newId("run"), firstEventId: 1 },
      conversationId: whose.agentId.replace("agt_", "conv_"),
      ...{ createdAt: now, expiresAt: now + 86_400_000 },
    }),
  );
  return approvalId;
}
