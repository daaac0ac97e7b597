/** Prefixes of the API's ids, api.md section 1, and those of records that only operators see. */
export type IdPrefix = "acct" | "key" | "inst" | "agt" | "msg" | "run" | "inv" | "txn" | "invite" | "call";

let latestMs = 0;

/**
 * A new id: prefix + UUIDv7 without dashes. Ids made by one process sort by creation, even when the wall clock steps
 * back, because the time in them never does; lists page by them.
 */
export function newId<P extends IdPrefix>(prefix: P): `${P}_${string}` {
  latestMs = Math.max(latestMs, Date.now());
  return `${prefix}_${Bun.randomUUIDv7("hex", latestMs).replaceAll("-", "")}`;
}

/** True for a string that `newId` could have made. Anything else is answered like an unknown id. */
export const isId = (prefix: IdPrefix, text: string): boolean =>
  text.length === prefix.length + 33 && text.startsWith(`${prefix}_`) && /^[0-9a-f]{32}$/.test(text.slice(-32));
