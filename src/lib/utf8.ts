/** Text with its byte order mark, if there is one; null for what is not UTF-8. */
export function decodeUtf8(bytes: Uint8Array | ArrayBuffer): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
