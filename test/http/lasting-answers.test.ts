import { expect, test } from "bun:test";
import { createLastingAnswers } from "../../src/http/lasting-answers.ts";
import { AppError } from "../../src/lib/app-error.ts";
import { type Caller, SCOPES } from "../../src/limits/caller.ts";

const callerWith = (keyId: string, accountId = "acct_a"): Caller => ({
  accountId,
  email: "ada@example.com",
  name: "Ada",
  scopes: new Set(SCOPES),
  instanceId: null,
  keyId,
  credentials: [{ kind: "key", keyId, expiresAt: null }],
});

test("an answer ends at the third check at the latest, also if most of the others ended a moment before", async () => {
  let looks = 0;
  const revoked = new Set<string>();
  const seen = new Set<string>();
  const lasting = createLastingAnswers({
    total: 1_000,
    limitOf: () => 1_000,
    stillValid({ keyId }) {
      seen.add(String(keyId));
      return !revoked.has(String(keyId));
    },
    beforeChecks: () => looks++,
    checkMs: 1,
  });
  const answers = Array.from({ length: 300 }, (_, at) => lasting.open(callerWith(`key_${at}`), "events"));
  while (looks === 0) await new Promise((resolve) => setImmediate(resolve));
  // No round checks all of them.
  expect(seen.size).toBeLessThanOrEqual(100 * looks);
  for (const answer of answers.slice(0, -1)) answer.close();
  const last = Promise.withResolvers<number>();
  const begun = looks;
  answers.at(-1)?.endWith(() => last.resolve(looks));
  revoked.add("key_299");
  expect((await last.promise) - begun).toBeLessThanOrEqual(3);
  lasting.stop();
});

test("each account has slots of each kind, and gets back those it releases", () => {
  const lasting = createLastingAnswers({ total: 100, limitOf: () => 2, stillValid: () => true });
  const caller = callerWith("key_a");
  const first = lasting.open(caller, "events");
  lasting.open(caller, "events");
  expect(() => lasting.open(caller, "events")).toThrow(AppError);
  lasting.open(caller, "run");
  lasting.open(callerWith("key_b", "acct_b"), "events");
  expect(lasting.count()).toBe(4);
  first.close();
  first.close();
  expect(lasting.count()).toBe(3);
  lasting.open(caller, "events");
  lasting.stop();
});
