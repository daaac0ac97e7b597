import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface TokenParts {
  header?: Record<string, unknown>;
  payload?: Record<string, unknown>;
  /** Signs with this instead of the host's newest key. */
  secret?: Buffer;
}

interface KeyFile {
  tokenKeys: { kid: string; secret: string }[];
}

const readTokenKeys = (dataDir: string): KeyFile["tokenKeys"] =>
  (JSON.parse(readFileSync(join(dataDir, "host-keys.json"), "utf8")) as KeyFile).tokenKeys;

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token like the host's own, except for the given parts. */
export function signedToken(dataDir: string, accountId: string, { header, payload, secret }: TokenParts = {}): string {
  const [newest] = readTokenKeys(dataDir);
  if (!newest) throw new Error("the host has no token key");
  const nowSeconds = Math.floor(Date.now() / 1000);
  const signed = [
    part({ alg: "HS256", typ: "JWT", kid: newest.kid, ...header }),
    part({ sub: accountId, iss: "roost", epoch: 0, iat: nowSeconds, exp: nowSeconds + 3600, ...payload }),
  ].join(".");
  const key = secret ?? Buffer.from(newest.secret, "base64");
  return `${signed}.${createHmac("sha256", key).update(signed).digest("base64url")}`;
}
