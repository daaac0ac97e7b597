const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Bytes as one big-endian number in base 62, padded with zeros to `length` digits. */
export function base62(bytes: Uint8Array, length: number): string {
  let value = bytes.byteLength === 0 ? 0n : BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  while (value > 0n) {
    text = DIGITS[Number(value % 62n)] + text;
    value /= 62n;
  }
  return text.padStart(length, "0");
}
