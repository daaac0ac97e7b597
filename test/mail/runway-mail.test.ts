import { expect, test } from "bun:test";
import { runwayMail } from "../../src/mail/runway-mail.ts";

const input = { stopsAt: Date.UTC(2026, 10, 22, 9, 5, 59), publicUrl: "https://roost.example.org" };

test("a mail about the balance says what stops, when in UTC, and how to top up by console and API", () => {
  const { subject, text } = runwayMail({
    ...input,
    reason: "insufficient_balance",
    secondsLeft: 86_399,
    runningInstances: 3,
  });
  expect(subject).toBe("Roost: your 3 running instances stop in 24 hours");
  expect(text).toContain("your 3 running instances stop at about 2026-11-22 09:05 UTC");
  expect(text).toContain("\n    https://roost.example.org\n");
  expect(text).toContain("\n    POST https://roost.example.org/v1/billing/top-up\n");
  expect(text).toContain("Or ask the operator of this host for credit.");
  expect(text).not.toContain("monthlyLimit");
});

test("a mail about the monthly limit says how to raise it, and nothing about paying, which would not help", () => {
  const { subject, text } = runwayMail({ ...input, reason: "monthly_limit", secondsLeft: 30, runningInstances: 1 });
  expect(subject).toBe("Roost: your running instance stops in 1 minute");
  expect(text).toContain('\n    PATCH https://roost.example.org/v1/auth/me\n    {"monthlyLimit": "25.00"}\n');
  expect(text).not.toContain("top-up");
});

test.each([
  [86_400, "24 hours"],
  [7_200, "2 hours"],
  [7_199, "120 minutes"],
  [3_600, "60 minutes"],
  [300, "5 minutes"],
  [0, "1 minute"],
])("%p seconds are %s", (secondsLeft, shown) => {
  const { subject } = runwayMail({ ...input, reason: "monthly_limit", secondsLeft, runningInstances: 2 });
  expect(subject).toBe(`Roost: your 2 running instances stop in ${shown}`);
});
