import { existsSync } from "node:fs";
import type { Address } from "../../chain/networks.ts";
import { isKeyForAddress, openWallet, readWallet, walletFile } from "../../chain/wallet.ts";
import type { Config } from "../../config.ts";
import { invoiceQueries } from "../../payments/invoice-queries.ts";
import { nextAddress } from "../../payments/lost-wallet.ts";
import { lockDataFolder } from "../../storage/lock.ts";
import { Failure } from "../failure.ts";
import { note, printFields, printJson, say } from "../output.ts";
import { openPrompt } from "../user/prompt.ts";
import { type DataOptions, readConfig, requireDataIn, withData } from "./data-folder.ts";

interface Options extends DataOptions {
  json?: true;
}

function requireWallet({ dataDir }: Pick<Config, "dataDir">): void {
  if (!existsSync(walletFile(dataDir))) {
    requireDataIn({ dataDir });
    throw new Failure(`there is no wallet in ${dataDir}`, "the first `roost serve` creates one");
  }
}

/** `roost wallet show`: the address that receives USDC, on which networks, and where its private key is. */
export async function showWallet(options: Options): Promise<void> {
  const { config } = readConfig(options);
  if (config.wallet === null) requireWallet(config);
  const address = await openWallet(config.dataDir, config.wallet as Address | null);
  const { networks } = config;
  const keyFile = config.wallet === null ? walletFile(config.dataDir) : null;
  if (options.json) printJson({ address, networks, keyFile });
  else
    printFields([
      ["Address", address],
      ["Networks", networks.join(", ")],
      ["Key", keyFile ?? "not on this host: the address is configured (ROOST_WALLET)"],
    ]);
}

const TYPED = 6;

/** `roost wallet export`: prints the private key after a confirmation, and after the audit row is written. */
export async function exportWallet(options: Options): Promise<void> {
  const { config } = readConfig(options);
  if (config.wallet !== null) {
    throw new Failure(
      "there is no private key here",
      "ROOST_WALLET is your own address: its key is where you created it",
    );
  }
  requireWallet(config);
  const wallet = readWallet(config.dataDir);
  if (!(await isKeyForAddress(wallet)))
    throw new Failure(`the key in ${walletFile(config.dataDir)} does not match its address`);
  const { address, privateKey } = wallet;
  await requireTyped(address);
  await withData(options, "refuse", ({ audit }) =>
    audit.append({ actor: "operator", action: "wallet.export", subject: address }),
  );
  if (options.json) printJson({ address, privateKey });
  else say(privateKey);
}

/** Throws unless the user types the end of the address. */
async function requireTyped(address: Address): Promise<void> {
  note(`This shows the private key of ${address}: anyone who sees it can take everything paid to this host.`);
  const prompt = openPrompt();
  try {
    const typed = await prompt.ask(`Type the last ${TYPED} characters of the address: `);
    if (typed.toLowerCase() === address.slice(-TYPED).toLowerCase()) return;
  } finally {
    prompt.close();
  }
  throw new Failure("that is not the end of the address: nothing is shown");
}

/** `roost wallet give-up`: quotes that name an address other than the next start's can no longer be paid. */
export function giveUpQuotes(options: Options): Promise<void> {
  return withData(options, "refuse", ({ config, store, clock, audit }) => {
    const lock = lockDataFolder(config.dataDir);
    try {
      const next = nextAddress(config);
      const invoices = invoiceQueries(store.db);
      const { length: open } = invoices.openElsewhere(clock.now(), next);
      if (open === 0 && next !== null) {
        throw new Failure(`every open quote names ${next}, where payments go: no quote has to be given up`);
      }
      const quotes = store.transaction(() => {
        invoices.expireElsewhere(next);
        audit.append({ actor: "operator", action: "wallet.give-up", subject: "quotes", detail: { quotes: open } });
        return open;
      });
      if (options.json) printJson({ quotes });
      else {
        const then =
          next === null ? "the next start creates a new wallet" : `from the next start on, payments go to ${next}`;
        say(`Gave up ${quotes === 1 ? "one quote" : `${quotes} quotes`}: ${then}.`);
      }
    } finally {
      lock.release();
    }
  });
}
