import { createFairCache } from "../lib/fair-cache.ts";
import { createFairPlaces } from "../limits/fair-places.ts";
import type { FairTurns } from "../limits/fair-turns.ts";
import { createSlices, type InSlices } from "../limits/slices.ts";
import type { NeedleTree } from "./needle-tree.ts";
import { createTree, redactBy } from "./redaction.ts";
import type { Secrets } from "./secrets.ts";

export interface RedactorParts {
  secrets: Pick<Secrets, "values" | "version">;
  accountOf(instanceId: string): string;
  /** Of what is done in slices. */
  turns: FairTurns;
}

/** Takes the values of secrets out of texts. */
export interface Redactors {
  /** By an instance's secrets as they are now. */
  redactor(instanceId: string): Promise<(text: string, most?: number) => Promise<string>>;
}

/** What is looked for, until the secrets change. */
interface Known {
  version: string;
  tree: Promise<NeedleTree>;
  /** In characters. */
  size: number;
}

/** Characters of what is kept to look for: of all accounts, and of one. */
const MAX_KEPT = 64 * 1024 * 1024;
const MAX_KEPT_OF_ONE = 8 * 1024 * 1024;
/** A longer text takes a place: undoing its escapes takes a multiple of its memory. */
const SMALL_TEXT = 32 * 1024;
/** For long texts, and for the decrypted secrets of an instance. Whoever waits holds a request already. */
const PLACES = { total: 8, maxPerOwner: 2, maxWaitingPerOwner: Number.POSITIVE_INFINITY };
const NEVER = new AbortController().signal;

export function createRedactors({ secrets, accountOf, turns }: RedactorParts): Redactors {
  const kept = createFairCache<Known>(MAX_KEPT, MAX_KEPT_OF_ONE, ({ size }) => size);
  const building = new Map<string, Known>();
  const places = createFairPlaces(PLACES);

  async function inPlace<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const release = await places.take(owner, NEVER);
    try {
      return await work();
    } finally {
      release?.();
    }
  }

  /** All who ask for it at the same time wait for the same one. */
  function treeOf(instanceId: string, version: string, owner: string, inSlices: InSlices): Promise<NeedleTree> {
    for (const known of [kept.get(instanceId), building.get(instanceId)]) {
      if (known?.version === version) return known.tree;
    }
    const known: Known = { version, tree: build(), size: 0 };
    building.set(instanceId, known);
    return known.tree;

    async function build(): Promise<NeedleTree> {
      try {
        return await inPlace(owner, async () => {
          // Read after the version, and so never older.
          const values = secrets.values(instanceId);
          const tree = await createTree(values, inSlices);
          known.size = [...values.values()].reduce((sum, { length }) => sum + length, tree.size());
          kept.set(owner, instanceId, known);
          return tree;
        });
      } finally {
        if (building.get(instanceId) === known) building.delete(instanceId);
      }
    }
  }

  return {
    async redactor(instanceId) {
      const version = secrets.version(instanceId);
      if (version === null) return async (text, most) => text.slice(0, most);
      const owner = accountOf(instanceId);
      const inSlices = createSlices(turns, owner);
      const tree = await treeOf(instanceId, version, owner, inSlices);
      return async (text, most) => {
        const work = () => redactBy(tree, text, inSlices, most);
        return text.length > SMALL_TEXT ? await inPlace(owner, work) : await work();
      };
    },
  };
}
