import { expect, test } from "bun:test";
import type { MailMessage } from "../../src/mail/message.ts";
import { mailOfSchedules, type NoticeParts } from "../../src/schedules/notice.ts";
import type { Schedule } from "../../src/schedules/schema.ts";
import { HOUR, handClock } from "../lib/hand-clock.ts";

test("an account is mailed about its schedules ten times an hour at most, and others as before", () => {
  const clock = handClock();
  const sent: string[] = [];
  const tell = mailOfSchedules({
    clock,
    store: { afterCommit: (work: () => void) => work() },
    mail: { send: async ({ to }: MailMessage) => void sent.push(to) },
    agents: { find: (agentId: string) => ({ agentId, instanceId: agentId, displayName: "Ada" }) },
    instances: { find: (instanceId: string) => ({ accountId: instanceId }) },
    emailOf: (accountId: string) => accountId,
    publicUrl: () => "http://localhost",
  } as unknown as NoticeParts);
  const fail = (agentId: string, times: number) => {
    for (let at = 0; at < times; at++) {
      tell({ scheduleId: `sch_${at}`, agentId, name: "Hourly", failuresInARow: 1 } as Schedule, "failing", "no model");
    }
    return sent.splice(0).filter((to) => to === agentId).length;
  };
  expect([fail("one", 1_000), fail("two", 3)]).toEqual([10, 3]);
  clock.advance(HOUR);
  expect(fail("one", 1)).toBe(1);
});
