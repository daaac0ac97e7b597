import { expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SMTPServer } from "smtp-server";
import { HOUR, handClock } from "../lib/hand-clock.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";

test("a schedule that fails is told by mail after the second time, and when it is switched off", async () => {
  const [clock, dataDir] = [handClock(), mkdtempSync(join(tmpdir(), "roost-schedule-mail-"))];
  const mock = startMockModelServer({ answer: { kind: "status", status: 400 } });
  const model = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
  const mails: { to: string[]; text: string }[] = [];
  let arrived = () => {};
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData(stream, { envelope }, done) {
      let text = "";
      stream.on("data", (bytes: Buffer) => (text += bytes));
      stream.on("end", () => {
        mails.push({ to: envelope.rcptTo.map(({ address }) => address), text });
        done();
        arrived();
      });
    },
  });
  await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", () => resolve()));
  const { port } = smtp.server.address() as { port: number };
  // Without SMTP the code to sign up with can be read here.
  const first = await startTestServer(model, { dataDir, clock });
  const owner = await first.signUp("owner@example.com");
  const { instanceId } = (await owner.ask("POST", "/v1/instances", { name: "home" })).body;
  const agents = `/v1/instances/${instanceId}/agents`;
  const { agentId } = (await owner.ask("POST", agents, { name: "Ada" })).body;
  const hourly = { name: "Hourly", message: "Fail", everySeconds: 3600 };
  await owner.ask("POST", `${agents}/${agentId}/schedules`, hourly);
  await first.app.stop();
  first.foundation.store.close();

  const mailed = { ROOST_SMTP_URL: `smtp://127.0.0.1:${port}`, ROOST_MAIL_FROM: "roost@example.com" };
  const server = await startTestServer({ ...model, ...mailed }, { dataDir, clock });
  const failures = () =>
    server.foundation.store.sqlite.query<{ n: number }, []>("SELECT failures_in_a_row AS n FROM schedules").get()?.n;
  const expected = [0, 1, 1, 1, 2];
  for (const [at, count] of expected.entries()) {
    const told = new Promise<void>((resolve) => (arrived = resolve));
    clock.step(HOUR);
    await server.app.scheduleTimer.tick();
    while ((failures() ?? 0) <= at) await new Promise((resolve) => setImmediate(resolve));
    if (mails.length < count) await told;
    expect(mails).toHaveLength(count);
  }
  const words = mails.map(({ text }) => text.replace(/=\r\n/g, "").replace(/\s+/g, " "));
  expect(mails.map(({ to }) => to)).toEqual([["owner@example.com"], ["owner@example.com"]]);
  expect(words[0]).toContain('the schedule "Hourly" of your agent Ada has failed 2 times in a row. The last time:');
  expect(words[1]).toContain(
    'the schedule "Hourly" of your agent Ada has failed 5 times in a row, so it was switched off.',
  );
  await server.stop();
  await mock.stop();
  await new Promise<void>((resolve) => smtp.close(() => resolve()));
});
