import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** By how much what is sealed is longer. */
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES;

/** The length of all keys. */
export const KEY_BYTES = 32;

/**
 * AES-256-GCM: nonce, ciphertext and tag concatenated. `about` is authenticated data: it must be the same for opening.
 */
export function seal(key: Uint8Array, content: Uint8Array, about: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(about));
  return Buffer.concat([nonce, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
}

/** The plaintext; null if the key, `about` or any bit differs. */
export function unseal(key: Uint8Array, sealed: Buffer, about: string): Buffer | null {
  if (sealed.byteLength < SEAL_BYTES) return null;
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(about))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  const content = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([content, decipher.final()]);
  } catch {
    return null;
  }
}
