import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readPrivateFile, writePrivateFile } from "../lib/private-file.ts";
import { KEY_BYTES } from "./seal.ts";

/**
 * The key that wraps the data keys: 32 bytes in a file (0600) that is made at first start. Outside the database, so that
 * a copy of the database opens no secret; `path` can put it on another disk. Throws, with the mend, when the file holds
 * anything else.
 */
export function openMasterKey(dataDir: string, path: string = join(dataDir, "master.key")): Buffer {
  if (!existsSync(path)) writePrivateFile(path, randomBytes(KEY_BYTES));
  const key = readPrivateFile(path);
  if (key.byteLength === KEY_BYTES) return key;
  throw new Error(
    `the master key ${path} holds ${key.byteLength} bytes, expected ${KEY_BYTES}; put it back from a copy of the data folder that has the keys`,
  );
}
