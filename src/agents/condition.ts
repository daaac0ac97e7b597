import { AppError } from "../lib/app-error.ts";

/** The condition of a request on the file it writes: the headers If-Match and If-None-Match. */
export interface Condition {
  ifMatch: string | null;
  ifNoneMatch: string | null;
}

/** Throws `precondition_failed`. The ETag is read only where there is a condition on it; null: there is no such file. */
export function checkCondition({ ifMatch, ifNoneMatch }: Condition, readEtag: () => string | null): void {
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
