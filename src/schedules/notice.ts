import type { Agents } from "../agents/agents.ts";
import type { Instances } from "../instances/instances.ts";
import type { Log } from "../lib/log.ts";
import type { Mail } from "../mail/message.ts";
import { scheduleMail } from "../mail/schedule-mail.ts";
import type { Store } from "../storage/store.ts";
import type { OutcomeParts } from "./outcome.ts";

export interface NoticeParts {
  store: Pick<Store, "afterCommit">;
  log: Log;
  mail: Pick<Mail, "send">;
  agents: Pick<Agents, "find">;
  instances: Pick<Instances, "find">;
  emailOf(accountId: string): string;
  publicUrl(): string;
}

/** Mails the owner of a schedule that fails, after the commit that says so. */
export const mailOfSchedules =
  ({ store, log, mail, agents, instances, emailOf, publicUrl }: NoticeParts): OutcomeParts["tell"] =>
  ({ scheduleId, agentId, name, failuresInARow }, what, reason) => {
    const agent = agents.find(agentId);
    const accountId = agent && instances.find(agent.instanceId)?.accountId;
    if (!agent || accountId === undefined) return;
    const about = { what, name, agent: agent.displayName, failuresInARow: failuresInARow + 1, reason };
    store.afterCommit(() => {
      mail
        .send({ to: emailOf(accountId), ...scheduleMail({ ...about, publicUrl: publicUrl() }) })
        .catch((err) => log.error({ err, scheduleId }, "the owner of a failing schedule could not be told by mail"));
    });
  };
