import { existsSync } from "node:fs";
import { openFoundation } from "../../app/foundation.ts";
import { checkNode } from "../../chain/check-node.ts";
import { QUORUM } from "../../chain/create-chain.ts";
import { type Address, NETWORKS, type NetworkName } from "../../chain/networks.ts";
import { hasValidChecksum, isKeyForAddress, readWallet, walletFile } from "../../chain/wallet.ts";
import type { Config } from "../../config.ts";
import { shortMoney } from "../../lib/money.ts";
import { createFacilitator } from "../../payments/facilitator/facilitator.ts";
import { ASKED, namesOf } from "../../payments/facilitator/x402-protocol.ts";
import { findLostWallet } from "../../payments/lost-wallet.ts";
import { SCHEMA_VERSION } from "../../storage/migrate.ts";
import { databaseOf, versionOf } from "./data-folder.ts";
import { type Finding, fail, pass } from "./finding.ts";

/**
 * Every node of every network is reachable and up to date. All are asked at once, for at most 1.5 s. A host without
 * internet access passes, unless its operator has configured nodes of their own.
 */
export async function checkRpc({ networks, rpcUrls }: Pick<Config, "networks" | "rpcUrls">): Promise<Finding> {
  const checks = await Promise.all(
    networks.flatMap((network) =>
      rpcUrls[network].map(async (url) => ({ network, ...(await checkNode(url, network)) })),
    ),
  );
  const bad = checks.filter(({ ok }) => !ok);
  if (bad.length === 0) return pass(`all nodes of ${networks.join(", ")} answer and are up to date`);
  const chosen = networks.some((network) => rpcUrls[network].join() !== NETWORKS[network].defaultRpcUrls.join());
  if (!chosen && bad.length === checks.length) {
    return pass(
      "no public node can be reached from here: quotes still go out and say so, and payments are credited once a node can " +
        "be reached; until then roost account credit EMAIL AMOUNT --note TEXT adds to a balance",
    );
  }
  const good = (network: NetworkName) => checks.filter((check) => check.network === network && check.ok).length;
  const off = networks.filter((network) => good(network) < Math.min(QUORUM, rpcUrls[network].length));
  const problems = bad.map(({ network, detail }) => `${network}: ${detail}`).join("; ");
  const settings = [...new Set(bad.map(({ network }) => `ROOST_${network.toUpperCase()}_RPC_URL`))].join(", ");
  if (off.length === 0) {
    return fail(
      `${problems}. Payments still work: enough other nodes answer`,
      `wait for the node, or set ${settings} to other nodes`,
    );
  }
  return fail(
    `${problems}. Quotes still go out, but no payment on ${off.join(", ")} is credited until they answer`,
    `let this host reach them, or set ${settings}; without internet access, roost account credit EMAIL AMOUNT --note TEXT adds to a balance`,
  );
}

/** The facilitator, if one is configured, settles payments on a network of this host. */
export async function checkFacilitator({
  facilitatorUrl,
  networks,
  minimumLaunchBalance,
}: Pick<Config, "facilitatorUrl" | "networks" | "minimumLaunchBalance">): Promise<Finding> {
  if (facilitatorUrl === null) return pass("none is configured: payers send the transfers themselves");
  const kinds = await createFacilitator({ url: facilitatorUrl }).kinds();
  const settled = networks.filter((network) =>
    kinds.some((kind) => kind.scheme === "exact" && namesOf(network).includes(kind.network)),
  );
  const inSteps =
    minimumLaunchBalance > ASKED
      ? `, 1.00 at a time: before an instance, which needs ${shortMoney(minimumLaunchBalance)} here, x402 clients top up in steps`
      : "";
  if (settled.length > 0)
    return pass(`${new URL(facilitatorUrl).origin} settles payments on ${settled.join(", ")}${inSteps}`);
  return fail(
    `${new URL(facilitatorUrl).origin} ${kinds.length === 0 ? "does not say what it settles" : `settles on none of ${networks.join(", ")}`}`,
    "correct ROOST_FACILITATOR_URL, or start the facilitator",
  );
}

/** Fails if somebody was asked to pay to another address than the one where payments are looked for; null if not. */
function checkQuotes(config: Pick<Config, "dataDir" | "wallet">): Finding | null {
  if (versionOf(databaseOf(config)) !== SCHEMA_VERSION) return null;
  const { store, clock } = openFoundation(config);
  try {
    const lost = findLostWallet(store.db, clock.now(), config);
    return lost === null ? null : fail(lost.detail, `stop the server and ${lost.mend}`);
  } finally {
    store.close();
  }
}

/** Payments can be spent: the key file's key matches its address, or the configured address has a valid checksum. */
export async function checkWallet({ dataDir, wallet }: Pick<Config, "dataDir" | "wallet">): Promise<Finding> {
  const path = walletFile(dataDir);
  const quotes = () => checkQuotes({ dataDir, wallet });
  if (wallet !== null) {
    if (await hasValidChecksum(wallet as Address))
      return quotes() ?? pass(`${wallet}, configured: its key is not on this host`);
    return fail(
      `${wallet} is mistyped: its capital letters do not match its checksum (EIP-55), and what is paid there is lost`,
      "copy the address to ROOST_WALLET again from where its key is",
    );
  }
  // A missing wallet is only a problem once somebody was asked to pay to it.
  if (!existsSync(path)) return quotes() ?? pass("none yet: the next start creates one");
  const held = readWallet(dataDir);
  if (await isKeyForAddress(held)) return quotes() ?? pass(`${held.address}, its key in ${path}`);
  return fail(
    `the key in ${path} does not match its address ${held.address}: what is paid there is lost`,
    "stop the server and restore the file from a backup that has the keys",
  );
}
