import { existsSync } from "node:fs";
import { openFoundation } from "../../app/foundation.ts";
import { checkNode } from "../../chain/check-node.ts";
import { type Address, NETWORKS, type NetworkName } from "../../chain/networks.ts";
import { hasValidChecksum, isKeyForAddress, readWallet, walletFile } from "../../chain/wallet.ts";
import type { Config } from "../../config.ts";
import { createFacilitator } from "../../payments/facilitator/facilitator.ts";
import { namesOf } from "../../payments/facilitator/x402-protocol.ts";
import { findLostWallet } from "../../payments/lost-wallet.ts";
import { SCHEMA_VERSION } from "../../storage/migrate.ts";
import { databaseOf, versionOf } from "./data-folder.ts";
import { type Finding, ill, well } from "./finding.ts";

/** So many must say the same before a payment is credited, where there are more than one (billing.md, x402 5). */
const QUORUM = 2;

/**
 * Every node of every network is there and up to date. All are asked at once, for at most 1.5 s. A host without a network
 * is no ill: only who has named nodes expects them to answer.
 */
export async function checkRpc({ networks, rpcUrls }: Pick<Config, "networks" | "rpcUrls">): Promise<Finding> {
  const checks = await Promise.all(
    networks.flatMap((network) =>
      rpcUrls[network].map(async (url) => ({ network, ...(await checkNode(url, network)) })),
    ),
  );
  const bad = checks.filter(({ ok }) => !ok);
  if (bad.length === 0) return well(`all nodes of ${networks.join(", ")} answer and are up to date`);
  const chosen = networks.some((network) => rpcUrls[network].join() !== NETWORKS[network].defaultRpcUrls.join());
  if (!chosen && bad.length === checks.length) {
    return well(
      "no public node can be reached from here: quotes go out and say so, and what is paid is credited once a node can be; " +
        "until then roost account credit EMAIL AMOUNT --note TEXT adds to a balance",
    );
  }
  const good = (network: NetworkName) => checks.filter((check) => check.network === network && check.ok).length;
  const off = networks.filter((network) => good(network) < Math.min(QUORUM, rpcUrls[network].length));
  const told = bad.map(({ network, detail }) => `${network}: ${detail}`).join("; ");
  const settings = [...new Set(bad.map(({ network }) => `ROOST_${network.toUpperCase()}_RPC_URL`))].join(", ");
  if (off.length === 0) {
    return ill(`${told}. Payments go on: enough others answer`, `wait for the node, or set ${settings} to others`);
  }
  return ill(
    `${told}. Quotes go out all the same; until they answer no payment on ${off.join(", ")} is credited`,
    `let this host reach them, or set ${settings}; without a network, roost account credit EMAIL AMOUNT --note TEXT adds to a balance`,
  );
}

/** The facilitator, where one is configured, settles payments on a network of this host. */
export async function checkFacilitator({
  facilitatorUrl,
  networks,
}: Pick<Config, "facilitatorUrl" | "networks">): Promise<Finding> {
  if (facilitatorUrl === null) return well("none is configured: payments are transfers that the payer makes");
  const kinds = await createFacilitator({ url: facilitatorUrl }).kinds();
  const settled = networks.filter((network) =>
    kinds.some((kind) => kind.scheme === "exact" && namesOf(network).includes(kind.network)),
  );
  if (settled.length > 0) return well(`${new URL(facilitatorUrl).origin} settles payments on ${settled.join(", ")}`);
  return ill(
    `${new URL(facilitatorUrl).origin} ${kinds.length === 0 ? "does not say what it settles" : `settles on none of ${networks.join(", ")}`}`,
    "correct ROOST_FACILITATOR_URL, or start the facilitator",
  );
}

/** Whether somebody was told to pay to another address than payments are looked for at; null where nobody was. */
function checkQuotes(config: Pick<Config, "dataDir" | "wallet">): Finding | null {
  if (versionOf(databaseOf(config)) !== SCHEMA_VERSION) return null;
  const { store, clock } = openFoundation(config);
  try {
    const lost = findLostWallet(store.db, clock.now(), config);
    return lost === null ? null : ill(lost.detail, `stop the server and ${lost.mend}`);
  } finally {
    store.close();
  }
}

/** What is paid here can be had: the key file's key is its address's, a configured address is not mistyped. */
export async function checkWallet({ dataDir, wallet }: Pick<Config, "dataDir" | "wallet">): Promise<Finding> {
  const path = walletFile(dataDir);
  const quotes = () => checkQuotes({ dataDir, wallet });
  if (wallet !== null) {
    if (await hasValidChecksum(wallet as Address))
      return quotes() ?? well(`${wallet}, configured: its key is not on this host`);
    return ill(
      `${wallet} is mistyped: its capitals are not those of its checksum (EIP-55), and what is paid there is lost`,
      "copy the address to ROOST_WALLET once more from where its key is",
    );
  }
  // No wallet is no ill, until somebody was told to pay to it.
  if (!existsSync(path)) return quotes() ?? well("none yet: the next start makes one");
  const held = readWallet(dataDir);
  if (await isKeyForAddress(held)) return quotes() ?? well(`${held.address}, its key in ${path}`);
  return ill(
    `the key in ${path} is not that of its address ${held.address}: what is paid there is lost`,
    "stop the server and put the file back from a backup that has the keys",
  );
}
