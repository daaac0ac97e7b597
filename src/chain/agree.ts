import type { Finding, Mined } from "./chain.ts";

/** What one node says about one transaction. */
export type NodeAnswer = { kind: "silent" } | { kind: "unknown" } | { kind: "failed" | "mined"; mined: Mined };
type Sighting = Extract<NodeAnswer, { mined: Mined }>;

/**
 * What to believe of several nodes' answers, of which `quorum` must agree (docs/contract/billing.md, Nodes). A block
 * that enough nodes see is believed even if others do not know it yet; nodes that contradict each other are not
 * believed.
 */
export function agree(answers: NodeAnswer[], quorum: number): Finding {
  const seen = Map.groupBy(answers.filter(isSighting), agreementKey).values().toArray();
  const believed = seen.filter((group) => group.length >= quorum);
  const [group] = believed;
  if (believed.length === 1 && group !== undefined) {
    const finalizedBy = group.filter(({ mined }) => mined.finalized).length;
    const { kind, mined } = group.reduce((a, b) => (b.mined.confirmations < a.mined.confirmations ? b : a));
    return { kind, mined: { ...mined, finalized: finalizedBy >= quorum } };
  }

  const unknowing = answers.filter(({ kind }) => kind === "unknown").length;
  if (believed.length === 0 && unknowing >= quorum) return { kind: "unknown" };
  const answered = answers.filter(({ kind }) => kind !== "silent").length;
  const count = `${answered} of ${answers.length} nodes answered`;
  return {
    kind: "unavailable",
    detail: answered < quorum ? `${count}, ${quorum} must` : `${count}, but too few of them agree`,
  };
}

function isSighting(answer: NodeAnswer): answer is Sighting {
  return answer.kind === "mined" || answer.kind === "failed";
}

/** Equal for answers that agree; the nodes' heads may differ. */
function agreementKey({ kind, mined }: Sighting): string {
  const { blockNumber, blockHash, blockTimeMs, transfers } = mined;
  const content = transfers.map(({ logIndex, token, from, to, amount }) => [logIndex, token, from, to, `${amount}`]);
  return JSON.stringify([kind, `${blockNumber}`, blockHash, blockTimeMs, content]);
}
