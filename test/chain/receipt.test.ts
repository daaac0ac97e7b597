import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Log, parseBlock, parseReceipt, readTransfers } from "../../src/chain/receipt.ts";

const HASH = `0x${"ab".repeat(32)}`;
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const TOKEN = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
const word = (digits: string) => `0x${digits.padStart(64, "0")}`;

const transferLog = (changes: Partial<Log> = {}): Log => ({
  address: TOKEN,
  topics: [TRANSFER, word("a1"), word("a2")],
  data: word("f4240"),
  ...changes,
});
const receipt = (changes: Record<string, unknown> = {}) => ({
  transactionHash: HASH,
  blockHash: HASH,
  blockNumber: "0x10",
  status: "0x1",
  logs: [transferLog()],
  ...changes,
});

test("a receipt is read, whatever fields a node adds and whatever case it uses", () => {
  const read = parseReceipt(
    receipt({ transactionHash: HASH.toUpperCase().replace("X", "x"), l1Fee: "0x1", effectiveGasPrice: null }),
    HASH,
  );
  expect(read).toEqual({ blockHash: HASH, blockNumber: 16n, succeeded: true, logs: [transferLog()] });
});

test("no receipt, and that of a pending transaction, are null", () => {
  expect(parseReceipt(null, HASH)).toBeNull();
  expect(parseReceipt(receipt({ blockHash: null, blockNumber: null }), HASH)).toBeNull();
});

test.each([
  ["no result", undefined],
  ["another transaction's hash", receipt({ transactionHash: `0x${"cd".repeat(32)}` })],
  ["no status", receipt({ status: undefined })],
  ["a status of neither kind", receipt({ status: "0x2" })],
  ["a block number of more than 64 bits", receipt({ blockNumber: `0x1${"0".repeat(16)}` })],
  ["a block number in decimals", receipt({ blockNumber: 16 })],
  ["a short block hash", receipt({ blockHash: "0xab" })],
  ["no logs", receipt({ logs: null })],
  ["more than 2,000 logs", receipt({ logs: Array(2_001).fill(transferLog()) })],
  ["a log of a contract that has no address", receipt({ logs: [{ ...transferLog(), address: "0x00" }] })],
])("an invalid receipt is refused: %s", (_what, result) => {
  expect(() => parseReceipt(result, HASH)).toThrow();
});

test("a transfer is read with its index in the receipt, and addresses in lower case", () => {
  const approval = transferLog({ topics: [word("1"), word("a1"), word("a2")] });
  expect(readTransfers([approval, transferLog()])).toEqual([
    {
      logIndex: 1,
      token: TOKEN,
      from: "0x00000000000000000000000000000000000000a1",
      to: "0x00000000000000000000000000000000000000a2",
      amount: 1_000_000n,
    },
  ]);
});

test.each([
  ["an ERC-721 Transfer", { topics: [TRANSFER, word("a1"), word("a2"), word("1")], data: "0x" }],
  ["a Transfer that indexes nothing", { topics: [TRANSFER], data: `0x${"00".repeat(96)}` }],
  ["a Transfer with more than an amount", { data: `0x${"00".repeat(64)}` }],
  ["a Transfer without an amount", { data: "0x" }],
  ["a Transfer to what is no address", { topics: [TRANSFER, word("a1"), `0x${"1".repeat(64)}`] }],
])("%s is not a transfer", (_what, changes) => {
  expect(readTransfers([transferLog(changes)])).toEqual([]);
});

test("any answer of a node is either read or refused, and an amount never has more than 256 bits", () => {
  const hex = fc.oneof(
    fc.constantFrom("0x", "0x0", HASH, TOKEN, TRANSFER, word("a1"), "0x1"),
    fc.stringMatching(/^0x[0-9a-fA-F]{0,66}$/),
    fc.string(),
  );
  const odd = fc.oneof({ depthSize: "small" }, hex, fc.jsonValue(), fc.constant(undefined));
  const log = fc.record({
    address: fc.oneof(fc.constant(TOKEN), odd),
    topics: fc.oneof(fc.constant([TRANSFER, word("a1"), word("a2")]), fc.array(hex, { maxLength: 6 }), odd),
    data: fc.oneof(hex, odd),
  });
  const likely = fc.record({
    transactionHash: fc.oneof({ weight: 8, arbitrary: fc.constant(HASH) }, odd),
    blockHash: fc.oneof({ weight: 8, arbitrary: fc.constant(HASH) }, odd),
    blockNumber: fc.oneof({ weight: 8, arbitrary: fc.constant("0x10") }, odd),
    status: fc.oneof({ weight: 8, arbitrary: fc.constantFrom("0x0", "0x1") }, odd),
    logs: fc.oneof({ weight: 8, arbitrary: fc.array(log, { maxLength: 3 }) }, odd),
  });
  fc.assert(
    fc.property(fc.oneof({ weight: 3, arbitrary: likely }, odd), (result) => {
      const read = (parse: () => unknown) => {
        try {
          return parse();
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect(["ZodError", "NodeError"]).toContain((error as Error).name);
          return null;
        }
      };
      read(() => parseBlock(result));
      const understood = read(() => parseReceipt(result, HASH)) as ReturnType<typeof parseReceipt>;
      if (understood === null) return;
      for (const { amount, to, from, token, logIndex } of readTransfers(understood.logs)) {
        expect(amount >= 0n && amount < 2n ** 256n).toBe(true);
        for (const address of [to, from, token]) expect(address).toMatch(/^0x[0-9a-fA-F]{40}$/);
        expect(logIndex).toBeLessThan(understood.logs.length);
      }
    }),
    { numRuns: 5_000 },
  );
});
