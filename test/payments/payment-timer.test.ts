import { expect, test } from "bun:test";
import { createLog } from "../../src/lib/log.ts";
import { createPaymentTimer } from "../../src/payments/payment-timer.ts";
import { handClock, SECOND } from "../lib/hand-clock.ts";

test("a recheck that a hanging network holds up keeps no claim and no later recheck waiting, and a stop waits for it", async () => {
  const clock = handClock();
  const rechecks: PromiseWithResolvers<void>[] = [];
  const second = Promise.withResolvers<void>();
  let looks = 0;
  const watching = createPaymentTimer({
    clock,
    log: await createLog("silent", "json"),
    async retryClaims() {
      looks += 1;
      clock.advance(10 * SECOND);
    },
    recheck() {
      const one = Promise.withResolvers<void>();
      if (rechecks.push(one) === 2) second.resolve();
      return one.promise;
    },
  });
  watching.run();
  await second.promise;
  expect(looks).toBe(2);

  let stopped = false;
  const stopping = watching.stop().then(() => {
    stopped = true;
  });
  rechecks[1]?.resolve();
  await Promise.resolve();
  expect(stopped).toBe(false);
  rechecks[0]?.resolve();
  await stopping;
}, 10_000);
