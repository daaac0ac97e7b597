import { AppError } from "../lib/app-error.ts";
import { type Caller, mayUse, SCOPES, type Scope } from "../limits/caller.ts";
import type { Accounts } from "./accounts.ts";
import { type Keys, looksLikeKey } from "./keys.ts";
import type { Account } from "./schema.ts";
import type { TokenClaims, TokenRefusal, Tokens } from "./tokens.ts";

const EVERY_SCOPE: ReadonlySet<Scope> = new Set(SCOPES);
const scopeSets = new Map<string, ReadonlySet<Scope>>();

/** The same answer for every bad credential: only the log says what is wrong with it. */
const unauthorized = (reason: string) =>
  new AppError("unauthorized", "missing or invalid credentials: send Authorization: Bearer <token>, or X-API-Key", {
    reason,
    headers: { "WWW-Authenticate": 'Bearer realm="roost"' },
  });

export interface Credentials {
  authorization: string | null;
  apiKey: string | null;
  address: () => string;
}

/** What one valid credential allows. Whether the account is suspended is checked once all credentials are known. */
interface Known extends Pick<Caller, "scopes" | "instanceId" | "keyId" | "credentials"> {
  account: Account;
}

/**
 * Authenticates a request (docs/contract/api.md, Signing in) by a token, a key, or a key in the place of a token. If
 * both headers are present, both must be valid and name the same account, and only what both allow is allowed. Throws
 * `unauthorized`, or `forbidden` for a suspended account. Returns a promise only if a signature must be checked or a
 * new address recorded.
 */
export function createAuthentication(
  accounts: Accounts,
  keys: Keys,
  tokens: Tokens,
): (credentials: Credentials) => Caller | Promise<Caller> {
  function accountOf(accountId: string): Account {
    const account = accounts.find(accountId);
    if (!account) throw unauthorized("no such account");
    return account;
  }

  function byKey(key: string, { address }: Credentials): Known | Promise<Known> {
    const record = keys.verify(key);
    if (!record) throw unauthorized("unknown or expired key");
    const account = accountOf(record.accountId);
    const { scopes, instanceId, keyId, expiresAt } = record;
    const credentials = [{ kind: "key", keyId, expiresAt } as const];
    const known = { account, scopes: scopesOf(scopes), instanceId, keyId, credentials };
    return whenKnown(keys.touch(record, address()), () => known);
  }

  function byClaims(claims: TokenClaims | TokenRefusal): Known {
    if (typeof claims === "string") throw unauthorized(claims);
    const account = accountOf(claims.accountId);
    if (account.tokenEpoch !== claims.epoch) throw unauthorized("token signed out with all of its account");
    const { tokenId, epoch, expiresAt } = claims;
    const credentials = [{ kind: "token", tokenId, epoch, expiresAt } as const];
    return { account, scopes: EVERY_SCOPE, instanceId: null, keyId: null, credentials };
  }

  function byBearer(authorization: string, credentials: Credentials): Known | Promise<Known> {
    const text = /^bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1];
    if (text === undefined) throw unauthorized("no bearer token");
    if (looksLikeKey(text)) return byKey(text, credentials);
    return whenKnown(tokens.verify(text), byClaims);
  }

  return (credentials) => {
    const { authorization, apiKey } = credentials;
    const key = apiKey === null ? null : byKey(apiKey, credentials);
    if (authorization === null) {
      if (key === null) throw unauthorized("no credential");
      return whenKnown(key, callerOf);
    }
    // The bearer first: of the two, only its promise may reject.
    return whenKnown(byBearer(authorization, credentials), (bearer) =>
      whenKnown(key, (known) => callerOf(known === null ? bearer : both(bearer, known))),
    );
  };
}

const whenKnown = <A, B>(value: A | Promise<A>, next: (value: A) => B | Promise<B>): B | Promise<B> =>
  value instanceof Promise ? value.then(next) : next(value);

function both(bearer: Known, key: Known): Known {
  if (bearer.account.accountId !== key.account.accountId) throw unauthorized("credentials of two accounts");
  const [less, more] = reachOf(bearer.scopes) < reachOf(key.scopes) ? [bearer, key] : [key, bearer];
  const scopes = new Set([...less.scopes].filter((scope) => scope !== "approve" || more.scopes.has(scope)));
  // Two keys limited to different instances allow nothing together.
  const apart = bearer.instanceId !== null && key.instanceId !== null && bearer.instanceId !== key.instanceId;
  return {
    ...key,
    scopes: apart ? new Set() : scopes,
    instanceId: key.instanceId ?? bearer.instanceId,
    credentials: [...bearer.credentials, ...key.credentials],
  };
}

const REACHES = ["read", "chat", "write", "keys"] as const;

/** How far scopes reach: each entry of `REACHES` includes those before it. */
const reachOf = (scopes: ReadonlySet<Scope>): number =>
  REACHES.findLastIndex((access) => mayUse({ scopes, instanceId: null }, access));

function callerOf({ account, ...reach }: Known): Caller {
  if (account.suspendedAt !== null)
    throw new AppError("forbidden", "this account is suspended; ask the host's operator");
  return { accountId: account.accountId, email: account.email, name: account.name, ...reach };
}

function scopesOf(text: string): ReadonlySet<Scope> {
  const known = scopeSets.get(text) ?? new Set(text.split(" ") as Scope[]);
  scopeSets.set(text, known);
  return known;
}
