import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { openFoundation } from "../../src/app/foundation.ts";
import type { Arrivals } from "../../src/payments/facilitator/arrivals.ts";
import { createAuthorizations } from "../../src/payments/facilitator/authorizations.ts";
import { createFacilitatedPayments } from "../../src/payments/facilitator/facilitated-payments.ts";

const dataDir = mkdtempSync(join(tmpdir(), "roost-signatures-"));
const { store, clock, accounts } = openFoundation({ dataDir });
afterAll(() => {
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const OPEN = 120;

test("each of many open signatures is looked for in its turn, also behind those that never arrive or fail", async () => {
  const authorizations = createAuthorizations(store);
  const { accountId } = store.transaction(() =>
    accounts.create({ email: "ada@example.com", name: "Ada", credit: 0n, note: "none" }),
  );
  for (let at = 0; at < OPEN; at++) {
    const nonce = `0x${at.toString(16).padStart(64, "0")}`;
    const validBefore = clock.now() + 3_600_000;
    // Several are of the same millisecond.
    const row = { accountId, amount: 1_000_000n, head: 1, validBefore, createdAt: clock.now() + Math.floor(at / 7) };
    authorizations.add({ network: "base", payer: `0x${"ada0".repeat(10)}`, nonce }, row);
  }
  const looked = new Map<string, number>();
  const everyTwice = Promise.withResolvers<void>();
  const arrivals: Pick<Arrivals, "look"> = {
    async look({ nonce }) {
      looked.set(nonce, (looked.get(nonce) ?? 0) + 1);
      if (looked.size === OPEN && [...looked.values()].every((times) => times >= 2)) everyTwice.resolve();
      if (nonce.endsWith("5")) throw new Error("the node says something strange");
      return { kind: "refused", reason: "not there yet" };
    },
  };
  const parts = {
    clock,
    authorizations,
    arrivals,
    networks: ["base"],
    log: pino({ level: "silent" }),
    checkEveryMs: 1,
  };
  const payments = createFacilitatedPayments(parts as unknown as Parameters<typeof createFacilitatedPayments>[0]);
  payments.run();
  await everyTwice.promise;
  await payments.stop();
  const times = [...looked.values()];
  expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(1);
});
