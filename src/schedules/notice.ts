import type { Agents } from "../agents/agents.ts";
import type { Instances } from "../instances/instances.ts";
import { type Clock, secondsOf } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createFixedWindows } from "../limits/fixed-windows.ts";
import type { Mail } from "../mail/message.ts";
import { scheduleMail } from "../mail/schedule-mail.ts";
import type { Store } from "../storage/store.ts";
import type { OutcomeParts } from "./outcome.ts";

/** Of one account; what happened meanwhile is in its agents' events. */
const MAILS_AN_HOUR = { seconds: 3_600, max: 10 };

export interface NoticeParts {
  store: Pick<Store, "afterCommit">;
  clock: Clock;
  log: Log;
  mail: Pick<Mail, "send">;
  agents: Pick<Agents, "find">;
  instances: Pick<Instances, "find">;
  emailOf(accountId: string): string;
  publicUrl(): string;
}

/** Mails the owner of a schedule that fails, after the commit that says so. */
export function mailOfSchedules(parts: NoticeParts): OutcomeParts["tell"] {
  const { store, clock, log, mail, agents, instances, emailOf, publicUrl } = parts;
  const mails = createFixedWindows(secondsOf(clock), MAILS_AN_HOUR);
  return ({ scheduleId, agentId, name, failuresInARow }, what, reason) => {
    const agent = agents.find(agentId);
    const accountId = agent && instances.find(agent.instanceId)?.accountId;
    if (!agent || accountId === undefined) return;
    const about = { what, name, agent: agent.displayName, failuresInARow: failuresInARow + 1, reason };
    store.afterCommit(() => {
      if (mails.count(accountId) > 0) return;
      mail
        .send({ to: emailOf(accountId), ...scheduleMail({ ...about, publicUrl: publicUrl() }) })
        .catch((err) => log.error({ err, scheduleId }, "the owner of a failing schedule could not be told by mail"));
    });
  };
}
