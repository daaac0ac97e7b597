import { randomFillSync } from "node:crypto";

/** Prefixes of the API's ids (docs/contract/api.md, Conventions) and of the records that only operators see. */
export type IdPrefix =
  | "acct"
  | "key"
  | "inst"
  | "agt"
  | "conv"
  | "msg"
  | "run"
  | "appr"
  | "rule"
  | "sch"
  | "mcp"
  | "wait"
  | "inv"
  | "txn"
  | "call"
  | "resp"
  | "fc"
  | "invite"
  | "change";

const RANDOM_BYTES = 8;
/** Asked of the system for many ids at once: for each it would take most of an id's time. */
const random = Buffer.alloc(512 * RANDOM_BYTES);
let used = random.length;

let latestMs = 0;
let counter = 0;

/**
 * A new id: prefix + UUIDv7 without dashes. Lists page by id, so the ids of one process strictly increase: the 12 bits
 * after the time count within a millisecond, and the time never goes back, even if the wall clock does.
 */
export function newId<P extends IdPrefix>(prefix: P): `${P}_${string}` {
  const nowMs = Date.now();
  if (nowMs > latestMs) {
    latestMs = nowMs;
    counter = 0;
  } else if (++counter > 0xfff) {
    latestMs++;
    counter = 0;
  }
  const time = latestMs.toString(16).padStart(12, "0");
  return `${prefix}_${time}7${counter.toString(16).padStart(3, "0")}${nextRandom()}`;
}

function nextRandom(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  const at = used;
  used += RANDOM_BYTES;
  random[at] = ((random[at] ?? 0) & 0x3f) | 0x80;
  return random.toString("hex", at, used);
}

const HEX = /^[0-9a-f]{32}$/;

/** Whether `newId` could have made this text. Anything else is answered like an unknown id. */
export const isId = (prefix: IdPrefix, text: string): boolean =>
  text.length === prefix.length + 33 && text.startsWith(`${prefix}_`) && HEX.test(text.slice(-32));
