import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import type { ModelCall } from "../../src/runtime/model-call.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { createBudgets } from "../../src/usage/budgets.ts";
import { usageQueries } from "../../src/usage/queries.ts";
import { createReservations, type OpenCall, type ReservationParts } from "../../src/usage/reservations.ts";

const ENGINE = { abilities: () => ({ contextTokens: 1_000, tools: false, prompt: "full" as const }) };
const ANSWER_TOKENS = 100;
/** For one call, not for two. */
const TOKENS_PER_DAY = 200;

let dataDir: string;
let store: Store;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-reservations-"));
  store = openStore(dataDir);
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** How often the limits of each account were looked at. */
function reservationsOf(parts: Partial<ReservationParts> = {}) {
  const looks = new Map<string, number>();
  const reservations = createReservations({
    store,
    clock: systemClock,
    prices: new Map(),
    budgets: createBudgets(() => ({ tokens: 0, cost: 0 })),
    queries: usageQueries(store.db),
    limitsFor({ accountId }) {
      looks.set(accountId, (looks.get(accountId) ?? 0) + 1);
      const limits = { tokensPerDay: TOKENS_PER_DAY };
      return { limited: [{ scope: "account", ownerId: accountId, limits }], rootRunId: null };
    },
    isOwnServer: () => false,
    warn() {},
    ...parts,
  });
  const open = async (accountId: string, signal = new AbortController().signal): Promise<OpenCall> =>
    reservations.open(callOf(accountId), "openai:any", ANSWER_TOKENS, ENGINE, signal);
  return { looks, open, figures: reservations.figures };
}

const callOf = (accountId: string): ModelCall => ({
  ...{ accountId, instanceId: `instance of ${accountId}`, agentId: `agent of ${accountId}` },
  ...{ models: [], messages: [{ role: "user", content: "Hello" }], tools: [], purpose: "answer", trace: null },
});

const nothing = { tokens: 0, cost: 0 };

test("a call that is cancelled while its reservation is being committed waits no longer", async () => {
  const controller = new AbortController();
  let opened = 0;
  const { open, figures } = reservationsOf({
    store: {
      ...store,
      commitSoon: (work, ...how) =>
        store.commitSoon(
          () => {
            const done = work();
            if (++opened === 2) controller.abort(new Error("cancelled"));
            return done;
          },
          ...how,
        ),
    },
  });
  await open("ada");
  expect(await open("ada", controller.signal).catch((error: Error) => error.message)).toBe("cancelled");
  expect(figures()).toEqual({ held: 1, waiting: 0, refused: 0 });
});

test("a reservation whose commit fails holds nothing: the next call has all of the limit", async () => {
  let isFull = true;
  const { open, figures } = reservationsOf({
    store: {
      ...store,
      commitSoon: (work, ...how) =>
        store.commitSoon(
          () => {
            const done = work();
            if (isFull) throw new Error("database or disk is full");
            return done;
          },
          ...how,
        ),
    },
  });
  await expect(open("ada")).rejects.toThrow("full");
  isFull = false;
  const next = open("ada");
  await store.commitSoon(() => {}, "full");
  expect(figures()).toEqual({ held: 1, waiting: 0, refused: 0 });
  (await next).settle(nothing);
  expect(figures()).toEqual({ held: 0, waiting: 0, refused: 0 });
});

test("what a call may cost is written as unknown where no price is known, and a token limit holds all the same", async () => {
  const costs = () => store.sqlite.query("SELECT cost FROM model_reservations").values();
  await reservationsOf().open("ada");
  expect(costs()).toEqual([[null]]);
});

test("what an account's calls give back wakes its own waiting calls, and nobody else's", async () => {
  const { open, looks, figures } = reservationsOf();
  const first = await open("ada");
  const second = open("ada");
  while (figures().waiting === 0) await store.commitSoon(() => {}, "full");
  const before = looks.get("ada");
  for (let call = 0; call < 20; call++) (await open("bob")).settle(nothing);
  await store.commitSoon(() => {}, "full");
  expect(looks.get("ada")).toBe(before);
  first.settle(nothing);
  (await second).settle(nothing);
  expect(figures()).toEqual({ held: 0, waiting: 0, refused: 0 });
});

test("reservations are an account's own writes, and take turns with those of others", async () => {
  const owners: (string | undefined)[] = [];
  const { open } = reservationsOf({
    store: {
      ...store,
      commitSoon(work, durability, owner) {
        owners.push(owner);
        return store.commitSoon(work, durability, owner);
      },
    },
  });
  await Promise.all([open("ada"), open("bob")]);
  expect(owners).toEqual(["ada", "bob"]);
});
