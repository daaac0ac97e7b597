import type { Clock } from "../lib/clock.ts";
import type { Accounts } from "./accounts.ts";
import type { Caller, Credential } from "./caller.ts";
import type { Keys } from "./keys.ts";
import type { Account } from "./schema.ts";
import type { SignedOut } from "./signed-out.ts";

export interface StillValidParts {
  clock: Clock;
  accounts: Pick<Accounts, "find">;
  keys: Pick<Keys, "works">;
  signedOut: Pick<SignedOut, "has">;
}

/**
 * Whether what a caller came with would be let in now: for answers that outlive the moment they were authorised in, such
 * as an event stream. Read from the database each time, so that what an operator's command changes counts at once: about
 * 5 µs in a turn that reads together (src/storage/store.ts), 10 alone. Where a caller came with two credentials, both must hold.
 */
export function createStillValid({ clock, accounts, keys, signedOut }: StillValidParts): (caller: Caller) => boolean {
  function holds(credential: Credential, account: Account): boolean {
    switch (credential.kind) {
      case "key":
        return keys.works(credential.keyId);
      case "token":
        return (
          credential.expiresAt > clock.now() &&
          credential.epoch === account.tokenEpoch &&
          !signedOut.has(credential.tokenId)
        );
    }
  }
  return ({ accountId, credentials }) => {
    const account = accounts.find(accountId);
    if (!account || account.suspendedAt !== null) return false;
    return credentials.every((credential) => holds(credential, account));
  };
}
