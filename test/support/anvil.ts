import { join } from "node:path";
import {
  type Address,
  createTestClient,
  encodeAbiParameters,
  encodeFunctionData,
  getAddress,
  type Hex,
  http,
  keccak256,
  numberToHex,
  parseAbi,
  publicActions,
} from "viem";
import { NETWORKS, type NetworkName } from "../../src/chain/networks.ts";
import testUsdc from "./usdc/test-usdc.json";

/** Circle's bridged USDC.e on Polygon, which is not accepted. */
export const BRIDGED_USDC: Address = "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174";
/** The same code as USDC at an unknown address: its `Transfer` logs look right but are worth nothing. */
export const IMPOSTOR_TOKEN: Address = getAddress("0x00000000000000000000000000000000badc0de5");
/** How much each of the node's accounts owns of each token, in micro-USDC. */
export const TEST_WEALTH = 1_000_000_000_000n;

export interface AnvilAccount {
  address: Address;
  privateKey: Hex;
}

export interface TestTransfer {
  to: Address;
  /** Micro-USDC. */
  amount: bigint;
  /** One of `accounts`; the first by default. */
  from?: Address;
  /** The network's USDC by default. */
  token?: Address;
}

/** A local test chain: Foundry's anvil with a USDC-like token (usdc/TestUsdc.sol) at the network's pinned address. */
export interface Anvil extends AsyncDisposable {
  readonly url: string;
  readonly network: NetworkName;
  readonly chainId: number;
  readonly pid: number;
  /** The network's pinned USDC. */
  readonly usdc: Address;
  /** Ten, each with ether and TEST_WEALTH of every token. */
  readonly accounts: AnvilAccount[];
  head(): Promise<bigint>;
  /** Mines that many blocks, empty unless transactions wait. Each is a second later than the one before. */
  mine(blocks?: number): Promise<void>;
  /** Sends a transaction and returns its hash. It is mined at once in a block of its own, unless blocks are timed. */
  transfer(transfer: TestTransfer): Promise<Hex>;
  /** Several transfers of one token in one transaction. */
  transferMany(
    transfers: Pick<TestTransfer, "to" | "amount">[],
    options?: Pick<TestTransfer, "from" | "token">,
  ): Promise<Hex>;
  /** Several transactions in one block. Their senders differ, or a reorganisation cannot keep one without the other. */
  transfersInOneBlock(transfers: TestTransfer[]): Promise<Hex[]>;
  /** A transfer of more than the balance: mined, and reverted. */
  failingTransfer(transfer: Omit<TestTransfer, "amount">): Promise<Hex>;
  mint(transfer: Omit<TestTransfer, "from">): Promise<Hex>;
  balanceOf(owner: Address, token?: Address): Promise<bigint>;
  /** Waits until a transaction is mined; resolves with whether it succeeded. */
  mined(hash: Hex): Promise<boolean>;
  /**
   * Replaces the newest `depth` blocks with as many others, with the same numbers. The transactions in `keep` are mined
   * again in the first of them, in this order; all others are dropped.
   */
  reorg(depth: number, keep?: Hex[]): Promise<void>;
  /** Any other method of the node: `evm_snapshot`, `evm_setAutomine`, `anvil_…`. */
  rpc(method: string, params?: unknown[]): Promise<unknown>;
  stop(): Promise<void>;
}

const BLOCKS_A_CALL = 100;
const PLATFORM = `${process.platform === "darwin" ? "darwin" : "linux"}-${process.arch === "arm64" ? "arm64" : "amd64"}`;
const BINARY = join(import.meta.dir, `../payers/node_modules/@foundry-rs/anvil-${PLATFORM}/bin/anvil`);
const TOKEN = parseAbi([
  "function transfer(address to, uint256 amount) returns (bool)",
  "function transferMany(address[] to, uint256[] amounts)",
  "function mint(address to, uint256 amount) returns (bool)",
  "function balanceOf(address owner) view returns (uint256)",
]);
/** The storage slot of `balanceOf` in TestUsdc. */
const BALANCES_SLOT = 1n;
const GAS = 1_000_000n;
const POLL_MS = 20;
/** Only ends what hangs. */
const MINED_WITHIN_MS = 120_000;

/**
 * Starts a node on a free port of the loopback; a transaction is mined at once, or every `blockTimeSeconds`. The
 * `finalized` block is 8 below the head (two epochs of 4 slots). Stop it, or declare it with `await using`.
 */
export async function startAnvil({
  network,
  blockTimeSeconds,
}: {
  network: NetworkName;
  blockTimeSeconds?: number;
}): Promise<Anvil> {
  const { chainId, asset } = NETWORKS[network];
  const timed = blockTimeSeconds === undefined ? [] : ["--block-time", String(blockTimeSeconds)];
  const child = Bun.spawn(
    [BINARY, "--port", "0", "--chain-id", String(chainId), "--slots-in-an-epoch", "4", "--color", "never", ...timed],
    { stdin: "ignore", stdout: "pipe", stderr: "ignore" },
  );
  const killAtExit = () => child.kill("SIGKILL");
  process.on("exit", killAtExit);
  const stop = async () => {
    child.kill("SIGKILL");
    await child.exited;
    process.off("exit", killAtExit);
  };

  const { url, accounts } = await readBanner(child.stdout);
  const client = createTestClient({
    mode: "anvil",
    transport: http(url, { retryCount: 0, timeout: 120_000 }),
  }).extend(publicActions);
  const rpc = (method: string, params: unknown[] = []): Promise<unknown> =>
    client.request({ method, params } as unknown as Parameters<typeof client.request>[0]);

  for (const token of [asset, BRIDGED_USDC, IMPOSTOR_TOKEN]) {
    await client.setCode({ address: token, bytecode: testUsdc.runtimeCode as Hex });
    await Promise.all(accounts.map(({ address }) => setBalance(token, address)));
  }
  // Mines a block with the state that was set directly, so that a reorganisation keeps it.
  await client.mine({ blocks: 1 });

  async function setBalance(token: Address, owner: Address): Promise<void> {
    const slot = encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [owner, BALANCES_SLOT]);
    await client.setStorageAt({
      address: token,
      index: keccak256(slot),
      value: numberToHex(TEST_WEALTH, { size: 32 }),
    });
  }

  const submit = (data: Hex, { from = accounts[0]?.address, token = asset }: Partial<TestTransfer>): Promise<Hex> =>
    rpc("eth_sendTransaction", [{ from, to: token, data, gas: numberToHex(GAS) }]) as Promise<Hex>;
  /** Not by the client: it asks again only at the next block, which never comes if the block is shown before its receipts. */
  async function mined(hash: Hex): Promise<boolean> {
    const endsAt = performance.now() + MINED_WITHIN_MS;
    for (;;) {
      const receipt = (await rpc("eth_getTransactionReceipt", [hash])) as { status: Hex } | null;
      if (receipt) return receipt.status === "0x1";
      if (performance.now() > endsAt) throw new Error(`the transaction ${hash} was not mined`);
      await Bun.sleep(POLL_MS);
    }
  }
  async function send(data: Hex, options: Partial<TestTransfer>): Promise<Hex> {
    const hash = await submit(data, options);
    await mined(hash);
    return hash;
  }
  const transferData = (to: Address, amount: bigint) =>
    encodeFunctionData({ abi: TOKEN, functionName: "transfer", args: [to, amount] });

  return {
    url,
    network,
    chainId,
    pid: child.pid,
    usdc: asset,
    accounts,
    head: () => client.getBlockNumber({ cacheTime: 0 }),
    async mine(blocks = 1) {
      // A call for thousands of blocks could take longer than its deadline.
      for (let left = blocks; left > 0; left -= BLOCKS_A_CALL) {
        await client.mine({ blocks: Math.min(left, BLOCKS_A_CALL) });
      }
    },
    transfer: ({ to, amount, ...rest }) => send(transferData(to, amount), rest),
    transferMany(transfers, rest = {}) {
      const args = [transfers.map(({ to }) => to), transfers.map(({ amount }) => amount)] as const;
      return send(encodeFunctionData({ abi: TOKEN, functionName: "transferMany", args }), rest);
    },
    async transfersInOneBlock(transfers) {
      await client.setAutomine(false);
      const hashes: Hex[] = [];
      for (const { to, amount, ...rest } of transfers) hashes.push(await submit(transferData(to, amount), rest));
      await client.mine({ blocks: 1 });
      await client.setAutomine(true);
      return hashes;
    },
    failingTransfer: ({ to, ...rest }) => send(transferData(to, 2n ** 255n), rest),
    mint: ({ to, amount, ...rest }) =>
      send(encodeFunctionData({ abi: TOKEN, functionName: "mint", args: [to, amount] }), rest),
    balanceOf: (owner, token = asset) =>
      client.readContract({ address: token, abi: TOKEN, functionName: "balanceOf", args: [owner] }),
    async reorg(depth, keep = []) {
      const kept = await Promise.all(keep.map((hash) => rpc("eth_getRawTransactionByHash", [hash])));
      await rpc("anvil_reorg", [depth, kept.map((raw) => [raw, 0])]);
    },
    mined,
    rpc,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Reads what anvil prints when it starts, and continues reading, so that its pipe never fills. */
async function readBanner(stdout: ReadableStream<Uint8Array>): Promise<{ url: string; accounts: AnvilAccount[] }> {
  const reader = stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (!/Listening on \S+:\d+\s/.test(text)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`anvil did not start: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  void (async () => {
    while (!(await reader.read()).done);
  })();
  const listed = (pattern: RegExp) => Array.from(text.matchAll(pattern), (match) => match[1] as Hex);
  const keys = listed(/^\(\d+\) (0x[0-9a-f]{64})\s*$/gim);
  const addresses = listed(/^\(\d+\) (0x[0-9a-f]{40}) /gim);
  const url = `http://127.0.0.1:${/Listening on \S+:(\d+)\s/.exec(text)?.[1]}`;
  return {
    url,
    accounts: addresses.map((address, at) => ({ address: getAddress(address), privateKey: keys[at] ?? "0x" })),
  };
}
