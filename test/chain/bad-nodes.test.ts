import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { getAddress } from "viem";
import type { Finding } from "../../src/chain/chain.ts";
import { createChain } from "../../src/chain/create-chain.ts";
import { withTimeout } from "../../src/lib/concurrency.ts";
import { handClock, MINUTE } from "../lib/hand-clock.ts";
import { type Anvil, startAnvil } from "../support/anvil.ts";
import { type RpcProxy, startRpcProxy } from "../support/rpc-proxy.ts";

const SOMEBODY = getAddress("0x00000000000000000000000000000000000000a1");
/** Two calls of 1.5 s each, and ten times what a busy machine adds. */
const BOUND_MS = 30_000;

let anvil: Anvil;
/** A proxy in front of the same chain; each test decides what it does wrong. */
let bad: RpcProxy;
let txHash: string;

beforeAll(async () => {
  anvil = await startAnvil({ network: "base" });
  txHash = await anvil.transfer({ to: SOMEBODY, amount: 1_000_001n });
  await anvil.mine(2);
});
beforeEach(() => {
  bad = startRpcProxy(anvil.url);
});
afterEach(() => bad.stop());
afterAll(() => anvil.stop());

/** Nodes that are waited for as long as in the product. */
const impatient = (...urls: string[]) => createChain({ network: "base", urls });
const deadlineMs = 60_000;
const baseWith = (...urls: string[]) => createChain({ network: "base", urls, deadlineMs });

async function timed(work: Promise<Finding>): Promise<Finding> {
  const began = performance.now();
  const finding = await work;
  expect(performance.now() - began).toBeLessThan(BOUND_MS);
  return finding;
}

/**
 * Asks ten times at most: beside a node that hangs, the good ones too have only the product's deadline, which a busy
 * machine may exceed.
 */
async function until<T>(ask: () => Promise<T>, isIt: (answer: T) => boolean): Promise<T> {
  for (let more = 9; ; more--) {
    const answer = await ask();
    if (more === 0 || isIt(answer)) return answer;
  }
}

test("a node that never answers costs its deadline and no more, and leaves nothing open", async () => {
  bad.hang();
  const chain = impatient(bad.url);
  const [finding, head] = await Promise.all([timed(chain.find(txHash)), chain.head()]);
  expect(finding).toEqual({ kind: "unavailable", detail: "0 of 1 nodes answered, 1 must" });
  expect(head).toBeNull();
  await bad.left(bad.calls());
});

test("a node that stops in the middle of its answer counts as one that never answers", async () => {
  const endless = () =>
    new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('{"result":')) });
  bad.answer(() => new Response(endless(), { headers: { "Content-Type": "application/json" } }));
  expect((await timed(impatient(bad.url).find(txHash))).kind).toBe("unavailable");
});

test("one good node is not enough beside one that hangs; two are", async () => {
  bad.hang();
  const besideOne = () => timed(impatient(bad.url, anvil.url).find(txHash));
  const besideTwo = () => timed(impatient(bad.url, anvil.url, anvil.url).find(txHash));
  const one = { kind: "unavailable", detail: "1 of 2 nodes answered, 2 must" } as const;
  expect(await until(besideOne, (finding) => Bun.deepEquals(finding, one))).toEqual(one);
  const two = await until(besideTwo, ({ kind }) => kind === "mined");
  expect(two).toMatchObject({ kind: "mined", mined: { confirmations: 3n } });
});

/** A transfer that never happened, as a lying node may invent it. */
const madeUp = (asked: string, receipt: Record<string, unknown>) => ({ ...receipt, transactionHash: asked });
const NEVER_SENT = `0x${"7".repeat(64)}`;

test("a node that invents a transaction is not believed beside a good one, nor against two", async () => {
  const real = (await anvil.rpc("eth_getTransactionReceipt", [txHash])) as Record<string, unknown>;
  bad.lie((result, { method }) => (method === "eth_getTransactionReceipt" ? madeUp(NEVER_SENT, real) : result));
  expect(await baseWith(bad.url).find(NEVER_SENT)).toMatchObject({ kind: "mined" });
  expect((await baseWith(bad.url, anvil.url).find(NEVER_SENT)).kind).toBe("unavailable");
  expect(await baseWith(bad.url, anvil.url, anvil.url).find(NEVER_SENT)).toEqual({ kind: "unknown" });
});

test("a node that alters an amount, a recipient or a status is not believed beside a good one, nor against two", async () => {
  const lies: ((receipt: ReceiptAnswer) => unknown)[] = [
    (receipt) => ({ ...receipt, logs: receipt.logs.map((log) => ({ ...log, data: `0x${"f".repeat(64)}` })) }),
    (receipt) => ({ ...receipt, logs: receipt.logs.map((log) => ({ ...log, address: SOMEBODY })) }),
    (receipt) => ({ ...receipt, logs: [...receipt.logs, ...receipt.logs] }),
    (receipt) => ({ ...receipt, logs: [] }),
    (receipt) => ({ ...receipt, status: "0x0" }),
    () => null,
  ];
  const truth = await baseWith(anvil.url).find(txHash);
  for (const lie of lies) {
    bad.lie((result, { method }) => (method === "eth_getTransactionReceipt" ? lie(result as ReceiptAnswer) : result));
    expect((await baseWith(bad.url, anvil.url).find(txHash)).kind).toBe("unavailable");
    expect(await baseWith(bad.url, anvil.url, anvil.url).find(txHash)).toEqual(truth);
  }
});

interface ReceiptAnswer {
  logs: Record<string, unknown>[];
}

test("a receipt of a block that is no longer canonical does not count", async () => {
  await using chain = await startAnvil({ network: "base" });
  const gone = await chain.transfer({ to: SOMEBODY, amount: 5n });
  const stale = await chain.rpc("eth_getTransactionReceipt", [gone]);
  await chain.reorg(1);
  await chain.mine(20);
  const node = startRpcProxy(chain.url);
  node.lie((result, { method }) => (method === "eth_getTransactionReceipt" ? stale : result));
  expect(await baseWith(node.url).find(gone)).toEqual({ kind: "unknown" });
  expect(await baseWith(node.url, node.url).find(gone)).toEqual({ kind: "unknown" });
  await node.stop();
});

test("a node with a receipt but without its block does not count", async () => {
  bad.lie((result, { method, params }) =>
    method === "eth_getBlockByNumber" && params[0] !== "finalized" ? null : result,
  );
  expect((await baseWith(bad.url).find(txHash)).kind).toBe("unavailable");
});

test("depth and finality are those of the node that is furthest behind", async () => {
  bad.lie((result, { method, params }) => {
    if (method === "eth_blockNumber") return "0xffffffff";
    return params[0] === "finalized" ? { ...(result as object), number: "0xffffffff" } : result;
  });
  expect(await baseWith(bad.url).find(txHash)).toMatchObject({ mined: { finalized: true } });
  expect(await baseWith(bad.url, anvil.url).find(txHash)).toMatchObject({
    mined: { confirmations: 3n, finalized: false },
  });
  expect(await baseWith(bad.url, anvil.url).head()).toBe(await anvil.head());
});

test("a block of a chain without a finalized tag is never final", async () => {
  await using chain = await startAnvil({ network: "base" });
  const hash = await chain.transfer({ to: SOMEBODY, amount: 5n });
  await chain.mine(20);
  const node = startRpcProxy(chain.url);
  node.lie((result, { params }) => {
    if (params[0] === "finalized") throw new Error("no such tag");
    return result;
  });
  const base = baseWith(node.url);
  expect(await base.find(hash)).toMatchObject({ kind: "mined", mined: { confirmations: 21n, finalized: false } });
  expect(base.health()).toMatchObject([{ ok: true, lastError: null }]);
  await node.stop();
});

test("a node of another chain counts as silent, also if it was on the right chain a minute ago", async () => {
  const polygon = createChain({ network: "polygon", urls: [anvil.url], deadlineMs });
  expect((await polygon.find(txHash)).kind).toBe("unavailable");
  expect(await polygon.head()).toBeNull();
  expect(polygon.health()).toMatchObject([{ ok: false, lastError: "answers for chain 8453 instead of 137" }]);

  const clock = handClock();
  const base = createChain({ network: "base", urls: [bad.url], clock, deadlineMs });
  expect((await base.find(txHash)).kind).toBe("mined");
  expect((await base.find(txHash)).kind).toBe("mined");
  expect(bad.calls("eth_chainId")).toBe(1);
  bad.lie((result, { method }) => (method === "eth_chainId" ? "0x1" : result));
  clock.advance(MINUTE);
  expect((await base.find(txHash)).kind).toBe("unavailable");
  expect((await base.find(txHash)).kind).toBe("unavailable");
});

const rpc = (result: unknown) => Response.json({ jsonrpc: "2.0", id: 1, result });
const nonsense: [string, () => Response][] = [
  ["HTTP 500", () => new Response("out of order", { status: 500 })],
  ["HTTP 429", () => Response.json({ error: "slow down" }, { status: 429 })],
  ["a page", () => new Response("<html>hello</html>", { headers: { "Content-Type": "text/html" } })],
  ["nothing", () => new Response("")],
  ["null", () => Response.json(null)],
  ["a list", () => Response.json([])],
  ["no result", () => Response.json({ jsonrpc: "2.0", id: 1 })],
  ["a JSON-RPC error", () => Response.json({ jsonrpc: "2.0", id: 1, error: { code: -32005, message: "limit" } })],
  ["null for all", () => rpc(null)],
  ["a number for all", () => rpc(8453)],
  ["an object for all", () => rpc({})],
  ["more than 2 MiB", () => rpc("0".repeat(2 * 1024 * 1024))],
  ["a deep list", () => new Response(`{"result":${"[".repeat(500_000)}${"]".repeat(500_000)}}`)],
  ["a redirect", () => Response.redirect(anvil.url, 307)],
];

test.each(nonsense)("a node that answers with %s is unavailable, and nothing is thrown", async (_what, answer) => {
  // The chain id is right, so that the following answers are read at all.
  bad.answer(({ method }) => (method === "eth_chainId" ? rpc("0x2105") : answer()));
  const chain = baseWith(bad.url);
  expect((await timed(chain.find(txHash))).kind).toBe("unavailable");
  expect(await chain.head()).toBeNull();
});

test("an error of null beside a result is not an error", async () => {
  bad.answer(({ method }) =>
    Response.json({ jsonrpc: "2.0", id: 1, error: null, result: method === "eth_chainId" ? "0x2105" : "0x7" }),
  );
  expect(await baseWith(bad.url).head()).toBe(7n);
});

test("neither a node's text nor the secret part of its URL is in any result or in its health", async () => {
  bad.answer(() => new Response("s3cret-answer", { status: 500 }));
  const url = `${bad.url.replace("http://", "http://user:s3cret-password@")}/v2/s3cret-path?key=s3cret-query`;
  const chain = baseWith(url, url);
  const finding = await chain.find(txHash);
  expect(JSON.stringify([finding, chain.health()])).not.toContain("s3cret");
  expect(chain.health()).toMatchObject([{ node: bad.url }, { node: bad.url }]);
});

test("the head is the lowest of the nodes that answer", async () => {
  bad.lie((result, { method }) => (method === "eth_blockNumber" ? "0x1" : result));
  expect(await baseWith(bad.url, anvil.url).head()).toBe(1n);
  bad.refuse();
  expect(await baseWith(bad.url, anvil.url).head()).toBe(await anvil.head());
});

test("the head comes within 1.5 s from the nodes that answer, although another hangs", async () => {
  bad.hang();
  const head = await anvil.head();
  const ask = () => withTimeout(impatient(bad.url, anvil.url).head(), 1_500);
  expect(await until(ask, (answer) => answer !== null)).toBe(head);
});

test("health counts calls and failures, and says what is wrong until a call succeeds again", async () => {
  const clock = handClock();
  const chain = createChain({ network: "base", urls: [bad.url], clock, deadlineMs });
  const quiet = { network: "base" as const, node: bad.url };
  expect(chain.health()).toEqual([{ ...quiet, ok: null, lastError: null, calls: 0, failures: 0, lastAnswerAt: null }]);
  bad.refuse();
  await chain.head();
  expect(chain.health()).toEqual([
    { ...quiet, ok: false, lastError: "answers with HTTP status 500", calls: 1, failures: 1, lastAnswerAt: null },
  ]);
  bad.pass();
  await chain.head();
  expect(chain.health()).toEqual([
    { ...quiet, ok: true, lastError: null, calls: 2, failures: 1, lastAnswerAt: clock.now() },
  ]);
});
