import { AppError } from "../lib/app-error.ts";

/** The error for a bundle that has no place: the account's bundles are too many, or those of all. */
export const tooMany = (whose: "each" | "total"): AppError =>
  whose === "each"
    ? new AppError(
        "rate_limited",
        "too many bundles of the account are being packed or unpacked; wait for one of them",
        {
          retryAfterSeconds: 5,
        },
      )
    : new AppError("internal_error", "this host packs and unpacks as many bundles as it can; try again in a moment", {
        status: 503,
        retryAfterSeconds: 5,
        isKept: false,
      });
