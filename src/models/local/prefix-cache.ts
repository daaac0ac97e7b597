/**
 * Keeps track of which slot has which conversation's rows. A new prompt starts from the longest prefix that a slot has:
 * this cuts the prefill of a 1,390-token system prompt from 1.4 s to 0.05 s. Only tokens are compared, so the rows are
 * always the right ones, and only slots of the same owner, since a faster answer would reveal what others have asked.
 */
export interface Slot {
  readonly index: number;
  /** Whose rows they are: an instance's id. */
  owner: string;
  /** The tokens whose rows the slot holds; the owner of a busy slot appends as it runs them. */
  tokens: number[];
  busy: boolean;
  /** Rows that are in memory, since they were written: also when the slot was rewound. */
  touchedRows: number;
  /** Rows that the answer in progress may need; 0 when idle. */
  promisedRows: number;
  usedAt: number;
}

export interface PrefixCache {
  /** A slot whose tokens are a prefix of `prompt`: the longest among the owner's slots. The caller releases it. */
  claim(owner: string, prompt: readonly number[], rows: number): Slot;
  release(slot: Slot): void;
}

export interface PrefixCacheOptions {
  slots: number;
  /** Rows of all slots together that may stay in memory; idle slots are emptied beyond it. */
  budgetRows: number;
  copyRows(from: number, to: number, rows: number): void;
  discard(slot: number, kept: number): void;
}

/**
 * The next turn of a conversation discards a few tokens at most: the reply, encoded again, may differ at its end. A
 * slot that would lose more belongs to another conversation, which will need its rows again.
 */
const OWN_TAIL_TOKENS = 32;

export function createPrefixCache(options: PrefixCacheOptions): PrefixCache {
  const slots = Array.from({ length: options.slots }, (_, index): Slot => {
    return { index, owner: "", tokens: [], busy: false, touchedRows: 0, promisedRows: 0, usedAt: 0 };
  });
  let uses = 0;
  const leastRecent = (list: Slot[]) =>
    list.reduce<Slot | undefined>((a, b) => (a && a.usedAt <= b.usedAt ? a : b), undefined);

  function empty(slot: Slot): void {
    options.discard(slot.index, 0);
    slot.tokens = [];
    slot.touchedRows = 0;
    slot.usedAt = 0;
  }

  function makeRoom(forSlot: Slot): void {
    const used = () => slots.reduce((sum, slot) => sum + Math.max(slot.touchedRows, slot.promisedRows), 0);
    while (used() > options.budgetRows) {
      const victim = leastRecent(slots.filter((slot) => slot !== forSlot && !slot.busy && slot.touchedRows > 0));
      if (victim === undefined) return; // all others are busy or empty
      empty(victim);
    }
  }

  return {
    claim(owner, prompt, rows) {
      const free = slots.filter((slot) => !slot.busy);
      // The last token always runs: its logits are needed.
      const shared = (slot: Slot) => (slot.owner === owner ? commonPrefix(slot.tokens, prompt, prompt.length - 1) : 0);
      const best = slots.reduce((a, b) => (shared(b) > shared(a) ? b : a));
      const common = shared(best);
      const continues = !best.busy && best.tokens.length - common <= OWN_TAIL_TOKENS;
      const slot = continues ? best : (leastRecent(free.filter((other) => other !== best)) ?? best);
      if (slot.busy) throw new Error("no free slot to claim");
      if (slot !== best) {
        if (common > 0) options.copyRows(best.index, slot.index, common);
        slot.tokens = best.tokens.slice(0, common);
      }
      slot.tokens.length = common;
      slot.owner = owner;
      slot.busy = true;
      slot.usedAt = ++uses;
      slot.promisedRows = rows;
      if (slot.touchedRows > rows) {
        options.discard(slot.index, rows);
        slot.touchedRows = rows;
      }
      makeRoom(slot);
      return slot;
    },
    release(slot) {
      slot.busy = false;
      slot.touchedRows = Math.max(slot.touchedRows, slot.tokens.length);
      slot.promisedRows = 0;
      slot.usedAt = ++uses;
    },
  };
}

function commonPrefix(a: readonly number[], b: readonly number[], limit: number): number {
  const end = Math.min(a.length, b.length, limit);
  let at = 0;
  while (at < end && a[at] === b[at]) at++;
  return at;
}
