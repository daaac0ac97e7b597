import { expect, test } from "bun:test";
import { createLog } from "../../src/lib/log.ts";
import { createPaymentTimer } from "../../src/payments/payment-timer.ts";
import { HOUR, handClock, SECOND } from "../lib/hand-clock.ts";

test("a recheck that a hanging network delays holds up no claim and no later recheck, and a stop waits for it", async () => {
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
    checkEveryMs: 1,
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
});

test("after a stop it checks nothing more", async () => {
  const clock = handClock();
  const looked = Promise.withResolvers<void>();
  let looks = 0;
  const look = async () => {
    looks += 1;
    looked.resolve();
  };
  const log = await createLog("silent", "json");
  const watching = createPaymentTimer({ clock, log, retryClaims: look, recheck: look, checkEveryMs: 1 });
  watching.run();
  await looked.promise;
  await watching.stop();
  const before = looks;
  clock.advance(HOUR);
  // Timers of one length fire in the order they were set: after this one, another check would have started.
  await new Promise((resolve) => setTimeout(resolve, 1));
  expect(looks).toBe(before);
});
