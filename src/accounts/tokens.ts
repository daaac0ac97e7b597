import { createHash, randomUUID } from "node:crypto";
import jwt from "@elysiajs/jwt";
import type { Clock } from "../lib/clock.ts";
import { createFairCache } from "../lib/fair-cache.ts";
import type { HostKeys } from "./host-keys.ts";
import type { RevokedTokens } from "./revoked-tokens.ts";

const LIFE_MS = 24 * 60 * 60 * 1000;
const MAX_CACHED_TOKENS = 10_000;
/** An account gets about twenty tokens in a day, which is how long one is valid; the rest is room for links. */
const MAX_CACHED_PER_ACCOUNT = 100;
const ISSUER = "roost";
const INVALID = "invalid or expired token";

/** A token's account, and the generation of that account's tokens. */
export interface TokenSubject {
  accountId: string;
  epoch: number;
}

/** What a valid token says. */
export interface TokenClaims extends TokenSubject {
  /** Its `jti`; for older tokens without one, a hash of the signed part. */
  tokenId: string;
  expiresAt: number;
}

/** Why a token is refused, for the log. */
export type TokenRefusal =
  | "token of an unknown key"
  | "invalid or expired token"
  | "expired token"
  | "token signed out";

export interface Tokens {
  issue(subject: TokenSubject): Promise<{ token: string; expiresAt: number }>;
  /**
   * The claims of a token that this host signed and that is neither expired nor signed out, or why it is refused. A
   * token seen before is answered from memory, without a signature check. The caller must check its epoch.
   */
  verify(token: string): TokenClaims | TokenRefusal | Promise<TokenClaims | TokenRefusal>;
}

/**
 * JWTs by @elysiajs/jwt: HS256 only, 24 hours, the newest key signs and every kept key verifies
 * (docs/contract/security.md, Credentials).
 */
export function createTokens(hostKeys: HostKeys, clock: Clock, revokedTokens: Pick<RevokedTokens, "has">): Tokens {
  const signers = new Map(
    hostKeys.tokenKeys.map(({ kid, secret }) => [
      kid,
      jwt({ name: "jwt", secret: new Uint8Array(secret), alg: "HS256", kid, iss: ISSUER }).decorator.jwt,
    ]),
  );
  const [newest] = signers.values();
  if (!newest)
    throw new Error("host-keys.json holds no token key; restore it from a backup, or remove it to make new ones");
  const seen = createFairCache<TokenClaims>(MAX_CACHED_TOKENS, MAX_CACHED_PER_ACCOUNT);

  function whileValid(claims: TokenClaims): TokenClaims | TokenRefusal {
    if (claims.expiresAt <= clock.now()) return "expired token";
    return revokedTokens.has(claims.tokenId) ? "token signed out" : claims;
  }

  async function check(token: string): Promise<TokenClaims | TokenRefusal> {
    const signer = signers.get(kidOf(token));
    if (!signer) return "token of an unknown key";
    const currentDate = new Date(clock.now());
    const payload = await signer.verify(token, { algorithms: ["HS256"], issuer: ISSUER, currentDate });
    if (!payload || typeof payload.sub !== "string" || typeof payload.exp !== "number") return INVALID;
    const { epoch, jti } = payload as Record<string, unknown>;
    if (typeof epoch !== "number") return INVALID;
    const tokenId = typeof jti === "string" ? jti : hashOfSigned(token);
    const claims = { accountId: payload.sub, epoch, tokenId, expiresAt: payload.exp * 1000 };
    seen.set(claims.accountId, token, claims);
    return whileValid(claims);
  }

  return {
    async issue({ accountId, epoch }) {
      const expiresAt = Math.floor((clock.now() + LIFE_MS) / 1000) * 1000;
      const token = await newest.sign({ sub: accountId, epoch, exp: expiresAt / 1000, jti: randomUUID() });
      return { token, expiresAt };
    },
    verify(token) {
      const known = seen.get(token);
      return known ? whileValid(known) : check(token);
    },
  };
}

/** The signature is left out: there are several spellings of the same one. */
const hashOfSigned = (token: string): string =>
  createHash("sha256")
    .update(token.slice(0, token.lastIndexOf(".")))
    .digest("base64url");

function kidOf(token: string): string {
  try {
    const header: unknown = JSON.parse(Buffer.from(token.slice(0, token.indexOf(".")), "base64url").toString());
    return typeof header === "object" && header !== null && "kid" in header ? String(header.kid) : "";
  } catch {
    return "";
  }
}
