import type { Client, Records } from "./client.ts";
import { AGENT, type AgentRecord, idsOf } from "./find.ts";

export type Approval = Records["Approval"];

/** Between two looks at what comes before a message. */
const LOOK_MS = 2_000;

/**
 * Tells of each approval that an earlier run of the conversation waits for, until what is returned is called: a message
 * whose turn has not come has no event of its own that says why.
 */
export function watchTurn(
  client: Client,
  agent: AgentRecord,
  conversationId: string,
  tell: (approval: Approval) => void,
): () => void {
  let isOver = false;
  let told: string | null = null;
  let timer = setTimeout(look, LOOK_MS);

  async function look(): Promise<void> {
    // What cannot be looked up now is looked up again: it is no reason to end the answer.
    const approval = await approvalBefore(client, agent, conversationId).catch(() => null);
    if (isOver) return;
    if (approval !== null && approval.approvalId !== told) {
      told = approval.approvalId;
      tell(approval);
    }
    timer = setTimeout(look, LOOK_MS);
  }

  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** What the conversation's run waits for, if that is a person's decision. */
async function approvalBefore(client: Client, agent: AgentRecord, conversationId: string): Promise<Approval | null> {
  const query = { status: "waiting", conversationId } as const;
  const { data } = await client.get(`${AGENT}/runs`, { path: idsOf(agent), query });
  const approvalId = data[0]?.waitingFor ?? null;
  return approvalId === null ? null : await client.get("/v1/approvals/{approvalId}", { path: { approvalId } });
}
