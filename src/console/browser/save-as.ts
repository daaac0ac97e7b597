import { make } from "./dom.ts";

const REVOKE_AFTER_MS = 60_000;

/** Hands a file to the browser, which saves it under this name. */
export function saveAs(name: string, contents: Blob): void {
  const link = make("a");
  link.href = URL.createObjectURL(contents);
  link.download = name;
  link.click();
  // A busy browser begins to read it later: revoked at once, the download would be lost.
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_AFTER_MS);
}
