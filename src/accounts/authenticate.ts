import { AppError } from "../lib/app-error.ts";
import type { Accounts } from "./accounts.ts";
import { type Caller, SCOPES, type Scope } from "./caller.ts";
import { type Keys, looksLikeKey } from "./keys.ts";
import type { Account } from "./table.ts";
import type { TokenClaims, Tokens } from "./tokens.ts";

const EVERY_SCOPE: ReadonlySet<Scope> = new Set(SCOPES);
const scopeSets = new Map<string, ReadonlySet<Scope>>();

/** Same words for every bad credential: nobody learns what was wrong with theirs (security.md). */
const unauthorized = () =>
  new AppError("unauthorized", "missing or invalid credentials: send Authorization: Bearer <token>, or X-API-Key", {
    headers: { "WWW-Authenticate": 'Bearer realm="roost"' },
  });

export interface Credentials {
  authorization: string | null;
  apiKey: string | null;
  address: () => string;
}

/**
 * Who a request is from (api.md section 2): a token, a key, or a key in a token's place. Where both headers are present
 * both must be valid and name the same account; the key's limits then hold. Throws `unauthorized`, or `forbidden` for a
 * suspended account. Answers without a promise for everything that needs no signature check.
 */
export function createAuthentication(
  accounts: Accounts,
  keys: Keys,
  tokens: Tokens,
): (credentials: Credentials) => Caller | Promise<Caller> {
  function byKey(key: string, address: () => string): Caller {
    const record = keys.verify(key);
    const account = record ? accounts.find(record.accountId) : undefined;
    if (!record || !account) throw unauthorized();
    keys.touch(record, address());
    return callerOf(account, scopesOf(record.scopes), record.instanceId, record.keyId);
  }

  function byClaims(claims: TokenClaims | null): Caller {
    const account = claims ? accounts.find(claims.accountId) : undefined;
    if (!account || !claims || account.tokenEpoch !== claims.epoch) throw unauthorized();
    return callerOf(account, EVERY_SCOPE, null, null);
  }

  function byBearer(text: string, address: () => string): Caller | Promise<Caller> {
    if (looksLikeKey(text)) return byKey(text, address);
    const claims = tokens.verify(text);
    return claims instanceof Promise ? claims.then(byClaims) : byClaims(claims);
  }

  return ({ authorization, apiKey, address }) => {
    if (authorization === null) {
      if (apiKey === null) throw unauthorized();
      return byKey(apiKey, address);
    }
    const bearer = /^bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1];
    if (bearer === undefined) throw unauthorized();
    const caller = byBearer(bearer, address);
    if (apiKey === null) return caller;
    const keyCaller = byKey(apiKey, address);
    return Promise.resolve(caller).then((bearerCaller) => both(bearerCaller, keyCaller));
  };
}

function both(bearer: Caller, key: Caller): Caller {
  if (bearer.accountId !== key.accountId) throw unauthorized();
  if (bearer.keyId !== null && bearer.keyId !== key.keyId) throw unauthorized();
  return key;
}

function callerOf(
  account: Account,
  scopes: ReadonlySet<Scope>,
  instanceId: string | null,
  keyId: string | null,
): Caller {
  if (account.suspendedAt !== null)
    throw new AppError("forbidden", "this account is suspended; ask the host's operator");
  return { accountId: account.accountId, email: account.email, name: account.name, scopes, instanceId, keyId };
}

function scopesOf(text: string): ReadonlySet<Scope> {
  const known = scopeSets.get(text) ?? new Set(text.split(" ") as Scope[]);
  scopeSets.set(text, known);
  return known;
}
