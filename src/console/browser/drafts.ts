/** Of the keys in this tab's storage that hold what was written. */
export const DRAFT = "roost.draft.";

/**
 * What an account has written and not sent, by where it belongs. It is in this tab's storage, so that it is there again
 * after a reload, and for who signs in again after the session has ended by itself.
 */
export interface Drafts {
  /** "" if there is none. */
  get(place: string): string;
  set(place: string, text: string): void;
}

/** The drafts of this account. Removes those of others: somebody else has signed in since. */
export function openDrafts(accountId: string): Drafts {
  const own = `${DRAFT}${accountId} `;
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(DRAFT) && !key.startsWith(own)) sessionStorage.removeItem(key);
  }
  const written = new Map<string, string>();
  return {
    get: (place) => written.get(place) ?? sessionStorage.getItem(own + place) ?? "",
    set(place, text) {
      written.set(place, text);
      try {
        if (text === "") sessionStorage.removeItem(own + place);
        else sessionStorage.setItem(own + place, text);
      } catch {
        // The storage is full: it stays in memory.
      }
    },
  };
}
