import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { writePrivateFile } from "../lib/private-file.ts";

/** What signs tokens and hides sign-in codes. In a file beside the database, so that a copy of the one is no use alone. */
export interface HostKeys {
  /** Key of the HMAC over sign-in codes. */
  pepper: Buffer;
  /** Newest first: the first signs, all verify. */
  tokenKeys: { kid: string; secret: Buffer }[];
}

interface KeyFile {
  pepper: string;
  tokenKeys: { kid: string; secret: string }[];
}

/** Reads `<data>/host-keys.json`, made at first start. Throws when it is there but not readable. */
export function openHostKeys(dataDir: string): HostKeys {
  const path = join(dataDir, "host-keys.json");
  if (!existsSync(path)) {
    const fresh: KeyFile = { pepper: secret(), tokenKeys: [{ kid: randomBytes(6).toString("hex"), secret: secret() }] };
    writePrivateFile(path, JSON.stringify(fresh, null, 2));
  }
  const file = JSON.parse(readFileSync(path, "utf8")) as KeyFile;
  return {
    pepper: Buffer.from(file.pepper, "base64"),
    tokenKeys: file.tokenKeys.map((key) => ({ kid: key.kid, secret: Buffer.from(key.secret, "base64") })),
  };
}

const secret = () => randomBytes(32).toString("base64");
