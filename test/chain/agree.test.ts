import { expect, test } from "bun:test";
import fc from "fast-check";
import { agree, type NodeAnswer } from "../../src/chain/agree.ts";
import type { Mined, Transfer } from "../../src/chain/chain.ts";

const RUNS = { numRuns: 20_000 };

// Few values, so that answers are often equal, or differ in one thing only.
const transfer: fc.Arbitrary<Transfer> = fc.record({
  logIndex: fc.constantFrom(0, 1),
  token: fc.constantFrom<Transfer["token"]>("0xA0", "0xB0"),
  from: fc.constant<Transfer["from"]>("0xC0"),
  to: fc.constantFrom<Transfer["to"]>("0xD0", "0xE0"),
  amount: fc.constantFrom(1n, 2n ** 255n),
});
const mined: fc.Arbitrary<Mined> = fc.record({
  blockNumber: fc.constantFrom(7n, 8n),
  blockHash: fc.constantFrom("0x01", "0x02"),
  blockTimeMs: fc.constantFrom(1_000, 2_000),
  confirmations: fc.bigInt({ min: 1n, max: 2n ** 64n }),
  finalized: fc.boolean(),
  transfers: fc.oneof({ weight: 3, arbitrary: fc.constant<Transfer[]>([]) }, fc.array(transfer, { maxLength: 2 })),
});
const answer: fc.Arbitrary<NodeAnswer> = fc.oneof(
  fc.constant<NodeAnswer>({ kind: "silent" }),
  fc.constant<NodeAnswer>({ kind: "unknown" }),
  fc.record({ kind: fc.constantFrom("mined" as const, "failed" as const), mined }),
);
const answers = fc.array(answer, { minLength: 1, maxLength: 6 });
const quorumOf = (list: unknown[]) => Math.min(2, list.length);

/** Equal except for what depends on a node's head. */
function saysTheSame(a: NodeAnswer, kind: string, told: Mined): boolean {
  if (a.kind !== kind || !("mined" in a)) return false;
  const { confirmations: _, finalized: __, ...story } = a.mined;
  const { confirmations: ___, finalized: ____, ...toldStory } = told;
  return Bun.deepEquals(story, toldStory, true);
}

test("nothing is believed that fewer nodes than the quorum say", () => {
  fc.assert(
    fc.property(answers, (list) => {
      const finding = agree(list, quorumOf(list));
      if (finding.kind === "unavailable") return;
      if (finding.kind === "unknown") {
        expect(list.filter(({ kind }) => kind === "unknown").length).toBeGreaterThanOrEqual(quorumOf(list));
        return;
      }
      const witnesses = list.filter((one) => saysTheSame(one, finding.kind, finding.mined));
      expect(witnesses.length).toBeGreaterThanOrEqual(quorumOf(list));
      for (const witness of witnesses) {
        if ("mined" in witness) expect(finding.mined.confirmations <= witness.mined.confirmations).toBe(true);
      }
      const sure = witnesses.filter((one) => "mined" in one && one.mined.finalized).length;
      expect(finding.mined.finalized).toBe(sure >= quorumOf(list));
    }),
    RUNS,
  );
});

test("two nodes that agree are believed whatever a third one says", () => {
  fc.assert(
    fc.property(answer, answer, fc.nat({ max: 2 }), (truth, lie, at) => {
      fc.pre(truth.kind !== "silent");
      const told: NodeAnswer[] = [truth, truth];
      const finding = agree(told.toSpliced(at, 0, lie), 2);
      expect<string>(finding.kind).toBe(truth.kind);
      if ("mined" in finding) expect(saysTheSame(truth, finding.kind, finding.mined)).toBe(true);
    }),
    RUNS,
  );
});

test("the order of the nodes does not matter", () => {
  fc.assert(
    fc.property(answers, (list) => {
      expect(agree(list.toReversed(), quorumOf(list))).toEqual(agree(list, quorumOf(list)));
    }),
    RUNS,
  );
});

const at = (confirmations: bigint, changes: Partial<Mined> = {}): NodeAnswer => ({
  kind: "mined",
  mined: {
    blockNumber: 7n,
    blockHash: "0x01",
    blockTimeMs: 1_000,
    confirmations,
    finalized: false,
    transfers: [],
    ...changes,
  },
});

test("two nodes that see a block are believed although two others do not know it", () => {
  const finding = agree([{ kind: "unknown" }, at(3n), { kind: "unknown" }, at(2n)], 2);
  expect(finding).toMatchObject({ kind: "mined", mined: { confirmations: 2n } });
});

test("pairs of nodes that see different blocks are not believed", () => {
  const other = at(3n, { blockHash: "0x02" });
  expect(agree([at(3n), at(3n), other, other], 2)).toEqual({
    kind: "unavailable",
    detail: "4 of 4 nodes answered, but too few of them agree",
  });
});

test("of two nodes, one alone cannot show that there is a block, or none", () => {
  expect(agree([at(3n), { kind: "unknown" }], 2).kind).toBe("unavailable");
  expect(agree([{ kind: "silent" }, { kind: "unknown" }], 2)).toEqual({
    kind: "unavailable",
    detail: "1 of 2 nodes answered, 2 must",
  });
});
