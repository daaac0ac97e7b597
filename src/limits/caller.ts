import { AppError, notFound } from "../lib/app-error.ts";

/** What an API key may do (docs/contract/api.md, Scopes): `chat` and `approve` include `read`, `write` includes `chat`. */
export const SCOPES = ["read", "write", "chat", "approve"] as const;
export type Scope = (typeof SCOPES)[number];
/** Those of a key for which none are named: to decide about what agents do is given by name only. */
export const USUAL_SCOPES: readonly Scope[] = ["read", "write", "chat"];

/** Who makes a request, after authentication: an account, and the limits of its credential. */
export interface Caller {
  accountId: string;
  email: string;
  name: string;
  scopes: ReadonlySet<Scope>;
  /** Set for a key limited to one instance; everything else is hidden from it. */
  instanceId: string | null;
  /** Null for a token. */
  keyId: string | null;
  /** The credentials of the request, for answers that outlive it: one, a token and a key, or two keys. */
  credentials: readonly Credential[];
}

/** A credential that was valid when the request came, with what shows whether it still is. Times in milliseconds. */
export type Credential =
  | { kind: "key"; keyId: string; expiresAt: number | null }
  | { kind: "token"; tokenId: string; epoch: number; expiresAt: number };

/**
 * What a route requires of its caller. `keys` is the management of credentials; `account` and `account-read` are
 * writing and reading what belongs to the whole account, which a key limited to one instance may not do.
 */
export type Access = "public" | "read" | "chat" | "write" | "approve" | "account" | "account-read" | "keys";

/** Throws `forbidden` if the caller's credential does not allow what the route requires. */
export function authorize(caller: Caller, access: Exclude<Access, "public">): void {
  if (!mayUse(caller, access)) {
    throw new AppError("forbidden", `this API key does not allow this: it needs ${NEEDS[access]}`);
  }
}

/**
 * Throws `not_found` for a key limited to another instance than the one in the path. This applies to stored answers too
 * (docs/contract/api.md, Order of checks).
 */
export function requireVisible({ instanceId }: Pick<Caller, "instanceId">, named: string | undefined): void {
  if (instanceId !== null && named !== undefined && named !== instanceId) throw notFound("instance");
}

const NEEDS: Record<Exclude<Access, "public">, string> = {
  read: "a scope",
  chat: "the scope chat or write",
  write: "the scope write",
  approve: "the scope approve, which a key has only if it was named for it",
  account: "the scope write, and not to be limited to an instance",
  "account-read": "a scope, and not to be limited to an instance",
  keys: "the scopes read, write and chat, and not to be limited to an instance",
};

/** The table of scopes: whether the caller's credential allows `access`. */
export function mayUse(caller: Pick<Caller, "scopes" | "instanceId">, access: Exclude<Access, "public">): boolean {
  const { scopes, instanceId } = caller;
  switch (access) {
    case "read":
      return scopes.size > 0;
    case "chat":
      return scopes.has("chat") || scopes.has("write");
    case "write":
      return scopes.has("write");
    case "approve":
      return scopes.has("approve");
    case "account":
      return scopes.has("write") && instanceId === null;
    case "account-read":
      return scopes.size > 0 && instanceId === null;
    case "keys":
      return USUAL_SCOPES.every((scope) => scopes.has(scope)) && instanceId === null;
  }
}
