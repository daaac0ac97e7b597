/**
 * `npm run example`: a complete payment on this machine, without real money. It starts a chain (anvil, with its own
 * USDC at the real address), a Roost that accepts payments on it, and an account with no balance; then it runs
 * pay-for-an-instance.mjs as the program that has a wallet.
 */
import { join } from "node:path";
import { openFoundation } from "../src/app/foundation.ts";
import { startAnvil } from "../test/support/anvil.ts";
import { startBinary } from "../test/support/binary.ts";

const CONFIRMATIONS = 3;

await using chain = await startAnvil({ network: "base", blockTimeSeconds: 1 });
await using host = await startBinary({
  env: {
    ROOST_NETWORKS: "base",
    ROOST_BASE_RPC_URL: chain.url,
    ROOST_BASE_CONFIRMATIONS: String(CONFIRMATIONS),
  },
});
console.log(`a chain on ${chain.url}, a host on ${host.url}; a payment needs ${CONFIRMATIONS} confirmations\n`);

const program = Bun.spawn(["node", join(import.meta.dir, "pay-for-an-instance.mjs")], {
  env: {
    PATH: process.env.PATH ?? "",
    ROOST_URL: host.url,
    ROOST_API_KEY: await createKey(),
    WALLET_KEY: chain.accounts[1]?.privateKey ?? "",
    RPC_URL: chain.url,
  },
  stdio: ["ignore", "inherit", "inherit"],
});
process.exitCode = await program.exited;

/** Signs up a new account without credit, and creates an API key for it. */
async function createKey(): Promise<string> {
  const foundation = openFoundation({ dataDir: host.dataDir });
  const link = foundation.links.create("program@example.com", 0n);
  foundation.store.close();
  const { token } = await post("/v1/auth/redeem-link", { link });
  const { key } = await post("/v1/auth/keys", { name: "program" }, { Authorization: `Bearer ${token}` });
  return key ?? "";
}

async function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Record<string, string>> {
  const response = await fetch(new URL(path, host.url), {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Record<string, string>;
}
