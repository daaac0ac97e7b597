import jwt from "@elysiajs/jwt";
import type { Clock } from "../lib/clock.ts";
import type { HostKeys } from "./host-keys.ts";

const LIFE_MS = 24 * 60 * 60 * 1000;
const CACHED_TOKENS = 10_000;
const ISSUER = "roost";

/** What a valid token says: whose it is, and which generation of that account's tokens. */
export interface TokenClaims {
  accountId: string;
  epoch: number;
}

export interface Tokens {
  issue(claims: TokenClaims): Promise<{ token: string; expiresAt: number }>;
  /**
   * The claims of a token that we signed and that has not expired, else null. A token seen before is answered from
   * memory, without a signature check; whether its epoch still counts is the caller's question.
   */
  verify(token: string): TokenClaims | null | Promise<TokenClaims | null>;
}

/** JWTs by @elysiajs/jwt: HS256 only, 24 hours, the newest key signs and every kept key verifies (security.md). */
export function createTokens(hostKeys: HostKeys, clock: Clock): Tokens {
  const signers = new Map(
    hostKeys.tokenKeys.map(({ kid, secret }) => [
      kid,
      jwt({ name: "jwt", secret: new Uint8Array(secret), alg: "HS256", kid, iss: ISSUER }).decorator.jwt,
    ]),
  );
  const [newest] = signers.values();
  if (!newest)
    throw new Error("host-keys.json holds no token key; restore it from a backup, or remove it to make new ones");
  const seen = new Map<string, TokenClaims & { expiresAt: number }>();

  async function check(token: string): Promise<TokenClaims | null> {
    const signer = signers.get(kidOf(token));
    const payload = signer
      ? await signer.verify(token, { algorithms: ["HS256"], issuer: ISSUER, currentDate: new Date(clock.now()) })
      : false;
    if (!payload || typeof payload.sub !== "string" || typeof payload.exp !== "number") return null;
    const epoch = (payload as Record<string, unknown>).epoch;
    if (typeof epoch !== "number") return null;
    if (seen.size >= CACHED_TOKENS)
      for (const oldest of seen.keys()) {
        seen.delete(oldest);
        break;
      }
    const claims = { accountId: payload.sub, epoch, expiresAt: payload.exp * 1000 };
    seen.set(token, claims);
    return claims;
  }

  return {
    async issue({ accountId, epoch }) {
      const expiresAt = Math.floor((clock.now() + LIFE_MS) / 1000) * 1000;
      const token = await newest.sign({ sub: accountId, epoch, exp: expiresAt / 1000 });
      return { token, expiresAt };
    },
    verify(token) {
      const known = seen.get(token);
      if (!known) return check(token);
      if (known.expiresAt > clock.now()) return known;
      seen.delete(token);
      return null;
    },
  };
}

function kidOf(token: string): string {
  try {
    const header: unknown = JSON.parse(Buffer.from(token.slice(0, token.indexOf(".")), "base64url").toString());
    return typeof header === "object" && header !== null && "kid" in header ? String(header.kid) : "";
  } catch {
    return "";
  }
}
