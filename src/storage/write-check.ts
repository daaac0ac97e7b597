import { isDiskFull } from "../lib/system-error.ts";
import type { Store } from "./store.ts";

/** Whether changes can be committed, for probes, which come far more often than a write for each may cost. */
export interface WriteCheck {
  /** Notes what a request failed with; only a full disk counts. */
  failed(error: unknown): void;
  /** Why no change can be committed, in words for anybody; null if changes can be. Found out by a write if not known. */
  refusal(): Promise<string | null>;
}

/** So long what was found counts. */
const KNOWN_MS = 10_000;

const FULL = "the host's disk is full";
const LOST = "the disk did not keep what was written: check it, then restart the server";
const REFUSED = "the database takes no changes";

/** `now` is in milliseconds. */
export function createWriteCheck(
  store: Pick<Store, "commitSoon" | "keepsWrites" | "sqlite">,
  now: () => number = () => performance.now(),
): WriteCheck {
  let known: { refusal: string | null; until: number } | undefined;
  let looking: Promise<string | null> | undefined;

  function know(refusal: string | null): string | null {
    known = { refusal, until: now() + KNOWN_MS };
    return refusal;
  }

  /** The smallest commit: the number stays what it is, and its page is written. */
  function write(): void {
    const { user_version: version } = store.sqlite.query<{ user_version: number }, []>("PRAGMA user_version").get() as {
      user_version: number;
    };
    store.sqlite.run(`PRAGMA user_version = ${version}`);
  }

  function look(): Promise<string | null> {
    return store
      .commitSoon(write, "full")
      .then(
        () => know(null),
        (error: unknown) => know(isDiskFull(error) ? FULL : REFUSED),
      )
      .finally(() => {
        looking = undefined;
      });
  }

  return {
    failed(error) {
      if (isDiskFull(error)) know(FULL);
    },
    async refusal() {
      if (!store.keepsWrites()) return LOST;
      if (known !== undefined && now() < known.until) return known.refusal;
      looking ??= look();
      const found = await looking;
      return store.keepsWrites() ? found : LOST;
    },
  };
}
