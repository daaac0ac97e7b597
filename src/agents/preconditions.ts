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
  const matches = (header: string) =>
    etag !== null && header.split(",").some((tag) => tag.trim() === "*" || tag.trim() === etag);
  if (ifMatch !== null && !matches(ifMatch)) {
    throw new AppError("precondition_failed", `If-Match: the file's ETag is ${etag ?? "none, it does not exist"}`);
  }
  if (ifNoneMatch !== null && matches(ifNoneMatch)) {
    throw new AppError("precondition_failed", "If-None-Match: the file exists");
  }
}
