import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readPrivateFile, writePrivateFile } from "../lib/private-file.ts";
import { KEY_BYTES } from "./seal.ts";

/**
 * The key that wraps the data keys: 32 bytes in a file (0600), created at the first start. It is outside the database,
 * so that a copy of the database reveals no secret; `path` may be on another disk. Throws, saying how to fix it, if the
 * file holds anything else.
 */
export function openMasterKey(dataDir: string, path: string = join(dataDir, "master.key")): Buffer {
  if (!existsSync(path)) writePrivateFile(path, randomBytes(KEY_BYTES));
  const key = readPrivateFile(path);
  if (key.byteLength === KEY_BYTES) return key;
  throw new Error(
    `the master key ${path} holds ${key.byteLength} bytes, expected ${KEY_BYTES}; restore it from a copy of the data folder that includes the keys`,
  );
}
