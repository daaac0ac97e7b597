import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Mail } from "../mail/message.ts";
import { runwayMail } from "../mail/runway-mail.ts";
import type { Store } from "../storage/store.ts";
import type { Meter } from "./meter.ts";
import { warningLevelOf } from "./runway.ts";

const REPEAT_AFTER_NS = 3_600_000_000_000n;

export interface RunwayNoticeParts {
  meter: Pick<Meter, "listen" | "runningInstances">;
  store: Pick<Store, "afterCommit">;
  clock: Clock;
  log: Log;
  mail: Pick<Mail, "send">;
  emailOf(accountId: string): string;
  publicUrl(): string;
}

/**
 * Mails an account's owner when its instances will stop soon. Each level is mailed at most once an hour: stopping and
 * starting an instance repeatedly repeats the events, but not the mail.
 */
export function mailRunways({ meter, store, clock, log, mail, emailOf, publicUrl }: RunwayNoticeParts): void {
  const mailedNs = new Map<string, bigint>();

  function isNew(accountId: string, secondsLeft: number): boolean {
    const nowNs = clock.monotonicNs();
    // The oldest come first.
    for (const [key, atNs] of mailedNs) {
      if (nowNs - atNs < REPEAT_AFTER_NS) break;
      mailedNs.delete(key);
    }
    const key = `${accountId} ${warningLevelOf(secondsLeft)}`;
    if (mailedNs.has(key)) return false;
    mailedNs.set(key, nowNs);
    return true;
  }

  meter.listen({
    exhausted() {},
    runwayShort(accountId, warning) {
      store.afterCommit(() => {
        if (!isNew(accountId, warning.secondsLeft)) return;
        const runningInstances = meter.runningInstances(accountId);
        const text = runwayMail({ ...warning, runningInstances, publicUrl: publicUrl() });
        mail
          .send({ to: emailOf(accountId), ...text })
          .catch((err) => log.error({ err, accountId }, "the runway warning could not be mailed"));
      });
    },
  });
}
