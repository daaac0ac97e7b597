import { createEgress, type Egress } from "../egress/egress.ts";
import { createEgressPolicy, type EgressSetting } from "../egress/policy.ts";
import { secondsOf } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { FairTurns } from "../limits/fair-turns.ts";
import { createFixedWindows } from "../limits/fixed-windows.ts";
import { type Broker, createBroker } from "../secrets/broker.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { Skills } from "../skills/skills.ts";
import { createHttpRequest } from "../tools/http-request.ts";
import { createPageReader } from "../tools/page/page-reader.ts";
import type { Tool } from "../tools/tool.ts";
import { createWebFetch } from "../tools/web-fetch.ts";
import type { Foundation } from "./foundation.ts";

/** Refused requests in the audit log, in an hour: of one account, and of all. */
const REFUSALS_OF_ONE = { seconds: 3_600, max: 20 };
const REFUSALS_OF_ALL = { seconds: 3_600, max: 500 };
/** A host's name may be longer; who wrote it is not known. */
const MAX_HOST = 100;

export interface WebParts {
  foundation: Pick<Foundation, "store" | "clock" | "audit">;
  log: Log;
  setting: EgressSetting;
  accountOf(instanceId: string): string;
  secrets: Secrets;
  skills: Pick<Skills, "requirementsOf">;
  /** Of the accounts' agents. */
  turns: FairTurns;
  /** Of what is done in slices. */
  sliceTurns: FairTurns;
}

/** How agents reach other hosts. */
export interface Web {
  egress: Egress;
  broker: Broker;
  tools: Tool[];
  close(): void;
}

export function createWeb(parts: WebParts): Web {
  const { foundation, log, setting, accountOf, secrets, skills, turns, sliceTurns } = parts;
  const { store, clock, audit } = foundation;
  const ofOne = createFixedWindows(secondsOf(clock), REFUSALS_OF_ONE);
  const ofAll = createFixedWindows(secondsOf(clock), REFUSALS_OF_ALL);
  const egress = createEgress({
    policy: createEgressPolicy(setting),
    turns,
    onRefused({ accountId, instanceId, runId, host, fault }) {
      // By the host, not the account: an agent that was talked into this must not use up its owner's rows.
      if (ofOne.wait(accountId) > 0 || ofAll.count("all") > 0) return;
      ofOne.count(accountId);
      const whose = { accountId, instanceId, runId };
      log.warn({ ...whose, host: host.slice(0, MAX_HOST), fault }, "refused an agent's request");
      const detail = { host: host.slice(0, MAX_HOST), fault };
      const write = () => audit.append({ actor: "host", action: "egress.refuse", subject: instanceId, detail });
      store
        .commitSoon(write, "process")
        .catch((err) => log.error({ err, ...whose }, "a refused request could not be audited"));
    },
  });
  const { requirementsOf } = skills;
  const isNamed = egress.policy.names;
  const broker = createBroker({ store, secrets, accountOf, requirementsOf, isNamed, turns: sliceTurns });
  const pages = createPageReader();
  const tools = [createWebFetch({ egress, pages, accountOf }), createHttpRequest({ egress, broker, accountOf })];
  return { egress, broker, tools: tools as Tool[], close: pages.close };
}
