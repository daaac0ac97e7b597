import { type Accounts, createAccounts } from "../accounts/accounts.ts";
import { createInvites, type Invites } from "../accounts/invites.ts";
import { createSignInLinks, type SignInLinks } from "../accounts/sign-in-links.ts";
import type { Config } from "../config.ts";
import { createLedger, type Ledger } from "../ledger/ledger.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { createAuditAllowance } from "../limits/audit-allowance.ts";
import { createOutbox, type Outbox } from "../mail/outbox.ts";
import { type Audit, createAudit } from "../storage/audit.ts";
import { openStore, type Store } from "../storage/store.ts";

/** The parts that need only the data folder: operator commands use them without a server. */
export interface Foundation {
  clock: Clock;
  store: Store;
  audit: Audit;
  ledger: Ledger;
  accounts: Accounts;
  invites: Invites;
  links: SignInLinks;
  outbox: Outbox;
}

/** Opens the data folder's database and the parts that use only it. A server and operator commands may share it. */
export function openFoundation(config: Pick<Config, "dataDir">, clock: Clock = systemClock): Foundation {
  const store = openStore(config.dataDir);
  const audit = createAudit(store, clock, createAuditAllowance(clock));
  const ledger = createLedger(store, clock);
  const accounts = createAccounts({ store, clock, audit, openBalance: ledger.open });
  return {
    clock,
    store,
    audit,
    ledger,
    accounts,
    invites: createInvites(store, clock, audit),
    links: createSignInLinks(store, clock, accounts, audit),
    outbox: createOutbox(store, clock),
  };
}
