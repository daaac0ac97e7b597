/** Places of which one owner has a few: who finds none is told so, and does not wait. */
export interface Seats {
  /** Takes a place, to be left once by calling what is given; null where there is none for this owner. */
  take(owner: string): (() => void) | null;
}

export function createSeats({ count, ofOwner }: { count: number; ofOwner: number }): Seats {
  const taken = new Map<string, number>();
  let total = 0;
  return {
    take(owner) {
      const own = taken.get(owner) ?? 0;
      if (total >= count || own >= ofOwner) return null;
      total += 1;
      taken.set(owner, own + 1);
      return () => {
        total -= 1;
        const left = (taken.get(owner) ?? 1) - 1;
        if (left === 0) taken.delete(owner);
        else taken.set(owner, left);
      };
    },
  };
}
