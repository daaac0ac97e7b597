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
 * The keys for tokens, sign-in codes, cursors and checkpoints. They are in a file beside the database, so that a copy
 * of the database alone is of no use. Each purpose has its own key.
 */
export interface HostKeys {
  /** Key of the HMAC over sign-in codes. */
  pepper: Buffer;
  /** Newest first: the first signs, all verify. */
  tokenKeys: { kid: string; secret: Buffer }[];
  /** Key of the HMAC over requests with an `Idempotency-Key`. */
  requestKey: Buffer;
  /** Key of the HMAC in the cursors of lists. */
  cursorKey: Buffer;
  /** Ed25519, private half: signs the audit log's checkpoints. */
  auditKey: KeyObject;
}

interface KeyFile {
  pepper: string;
  tokenKeys: { kid: string; secret: string }[];
  /** PKCS #8, base64. Absent from files older than checkpoints. */
  auditKey?: string;
}

const pathOf = (dataDir: string) => join(dataDir, "host-keys.json");

function readFile(path: string): KeyFile {
  const file = readPrivateJson(path) as Partial<KeyFile> | null;
  if (typeof file?.pepper === "string" && Array.isArray(file.tokenKeys)) return file as KeyFile;
  throw new Error(`${path} holds no keys; restore it from a copy of the data folder that includes them`);
}

export const hasHostKeys = (dataDir: string): boolean => existsSync(pathOf(dataDir));

/**
 * Reads `<data>/host-keys.json`, creating it at the first start and adding keys that an older file lacks. Only for the
 * server, which holds the data folder's lock. Throws if the file exists but cannot be read.
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

/**
 * The key that verifies the audit log's checkpoints; null if none was created yet. Changes nothing. Throws as above.
 */
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

/** HKDF (RFC 5869): keys with different labels are independent. */
const derive = (from: Buffer, label: string): Buffer =>
  Buffer.from(hkdfSync("sha256", from, "roost host keys", label, 32));
