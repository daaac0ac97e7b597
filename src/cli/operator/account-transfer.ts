import { createChain } from "../../chain/create-chain.ts";
import type { Address, NetworkName } from "../../chain/networks.ts";
import { CURRENCY, formatMoney } from "../../lib/money.ts";
import { nextAddress } from "../../payments/lost-wallet.ts";
import { creditUnclaimed } from "../../payments/unclaimed-transfer.ts";
import { Failure, UsageError } from "../failure.ts";
import { balanceCents, printJson, say } from "../output.ts";
import { type AccountOptions, findAccount, showAccountRecord } from "./account-record.ts";
import { withData } from "./data-folder.ts";
import { readEmail } from "./email.ts";

const HASH = /^0x[0-9a-f]{64}$/i;

/**
 * `roost account credit-transfer EMAIL NETWORK TRANSACTION --note TEXT`: credits USDC that has arrived and that no quote asked
 * for, as the chain's nodes show it, never twice.
 */
export function creditTransfer(
  email: string,
  network: NetworkName,
  txHash: string,
  options: AccountOptions & { note: string },
): Promise<void> {
  const address = readEmail(email);
  if (!HASH.test(txHash)) throw new UsageError("the transaction's hash: expected 0x and 64 hex digits");
  return withData(options, "refuse", async (parts) => {
    const { config, store, clock, audit } = parts;
    const recipient = nextAddress(config);
    if (recipient === null) throw new Failure(`there is no wallet in ${config.dataDir}`);
    const { accountId } = findAccount(parts, address);
    const proof = { network, txHash: txHash.toLowerCase() };
    const finding = await createChain({ network, urls: config.rpcUrls[network], clock }).find(proof.txHash);
    if (finding.kind === "unavailable") {
      throw new Failure(`the nodes of ${network} do not say: ${finding.detail}; nothing was credited`);
    }
    if (finding.kind !== "mined") {
      const what = finding.kind === "unknown" ? "is in no block" : "has failed";
      throw new Failure(`the transaction ${what} of ${network}: nothing was credited`);
    }
    const { confirmations } = config;
    const amount = store.transaction(() => {
      const gift = creditUnclaimed(
        { ...parts, confirmations, recipient: recipient as Address },
        proof,
        finding.mined,
        accountId,
      );
      if (gift.kind === "refused") throw new Failure(`nothing was credited: ${gift.reason}`);
      const amount = formatMoney(gift.payments.reduce((sum, payment) => sum + payment.amount, 0n));
      const detail = { ...proof, amount, note: options.note };
      audit.append({ actor: "operator", action: "account.credit-transfer", subject: accountId, detail });
      return amount;
    });
    const account = showAccountRecord(findAccount(parts, address), parts);
    if (options.json) printJson(account);
    else say(`Credited ${amount} ${CURRENCY} to ${account.email}: the balance is ${balanceCents(account.balance)}.`);
  });
}
