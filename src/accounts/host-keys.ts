import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readPrivateJson, writePrivateFile } from "../lib/private-file.ts";

/**
 * What signs tokens, hides sign-in codes and marks what is given out. In a file beside the database, so that a copy of
 * the one is no use alone. Each purpose has a key of its own: what one of them does tells nothing of the others.
 */
export interface HostKeys {
  /** Key of the HMAC over sign-in codes. */
  pepper: Buffer;
  /** Newest first: the first signs, all verify. */
  tokenKeys: { kid: string; secret: Buffer }[];
  /** Key of the HMAC over requests that came with an `Idempotency-Key`. */
  requestKey: Buffer;
  /** Key of the HMAC in the cursors of lists. */
  cursorKey: Buffer;
  /** Ed25519, private half: signs the audit log's checkpoints. */
  auditKey: KeyObject;
}

interface KeyFile {
  pepper: string;
  tokenKeys: { kid: string; secret: string }[];
  /** PKCS #8, base64. Absent from a file of before there were checkpoints. */
  auditKey?: string;
}

const pathOf = (dataDir: string) => join(dataDir, "host-keys.json");

function readFile(path: string): KeyFile {
  const file = readPrivateJson(path) as Partial<KeyFile> | null;
  if (typeof file?.pepper === "string" && Array.isArray(file.tokenKeys)) return file as KeyFile;
  throw new Error(`${path} holds no keys; put it back from a copy of the data folder that has them`);
}

/**
 * Reads `<data>/host-keys.json`, made at first start; what a newer Roost needs is added to an older file. For the server
 * alone, which holds the data folder's lock. Throws when the file is there but not readable.
 */
export function openHostKeys(dataDir: string): HostKeys {
  const path = pathOf(dataDir);
  const file: KeyFile = existsSync(path)
    ? readFile(path)
    : { pepper: secret(), tokenKeys: [{ kid: randomBytes(6).toString("hex"), secret: secret() }] };
  if (file.auditKey === undefined) {
    file.auditKey = newSigningKey();
    writePrivateFile(path, JSON.stringify(file, null, 2));
  }
  const pepper = Buffer.from(file.pepper, "base64");
  return {
    pepper,
    tokenKeys: file.tokenKeys.map((key) => ({ kid: key.kid, secret: Buffer.from(key.secret, "base64") })),
    requestKey: derive(pepper, "idempotent requests"),
    cursorKey: derive(pepper, "cursors of lists"),
    auditKey: signingKeyOf(file.auditKey),
  };
}

/** What verifies the audit log's checkpoints; null where no server has made it yet. Changes nothing. Throws as above. */
export function readAuditKey(dataDir: string): KeyObject | null {
  const path = pathOf(dataDir);
  const auditKey = existsSync(path) ? readFile(path).auditKey : undefined;
  return auditKey === undefined ? null : createPublicKey(signingKeyOf(auditKey));
}

const secret = () => randomBytes(32).toString("base64");

const newSigningKey = (): string =>
  generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "der" }).toString("base64");

const signingKeyOf = (text: string): KeyObject =>
  createPrivateKey({ key: Buffer.from(text, "base64"), type: "pkcs8", format: "der" });

/** HKDF (RFC 5869): keys with different labels are as good as unrelated. */
const derive = (from: Buffer, label: string): Buffer =>
  Buffer.from(hkdfSync("sha256", from, "roost host keys", label, 32));
