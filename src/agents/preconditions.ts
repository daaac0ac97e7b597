import { AppError } from "../lib/app-error.ts";

/** A request's headers If-Match and If-None-Match, for the file that it writes. */
export interface Preconditions {
  ifMatch: string | null;
  ifNoneMatch: string | null;
}

/** Throws `precondition_failed`. Reads the ETag only if a header needs it; null means that the file does not exist. */
export function checkPreconditions({ ifMatch, ifNoneMatch }: Preconditions, readEtag: () => string | null): void {
  if (ifMatch === null && ifNoneMatch === null) return;
  const etag = readEtag();
  if (ifMatch !== null && (etag === null || !names(ifMatch, etag))) {
    throw new AppError("precondition_failed", `If-Match: the file's ETag is ${etag ?? "none, it does not exist"}`);
  }
  if (ifNoneMatch !== null && etag !== null && namesWeakly(ifNoneMatch, etag)) {
    throw new AppError("precondition_failed", "If-None-Match: the file exists");
  }
}

/** What proxies that compress (Caddy, Apache) write into an answer's ETag, and leave in If-Match. */
const ENCODED = /-(?:gzip|zstd|br|deflate)"$/;

const names = (header: string, etag: string): boolean =>
  header.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(ENCODED, '"') === etag);

/** Whether If-None-Match names this ETag: also as a weak one, into which a proxy that compresses turns it (RFC 9110, 13.1.2). */
export const namesWeakly = (header: string, etag: string): boolean =>
  names(header.replaceAll(/(^|[\s,])W\//g, "$1"), etag);
