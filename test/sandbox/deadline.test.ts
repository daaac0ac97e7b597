import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { startLocked, type Time } from "../../src/sandbox/probe.ts";
import { never, openSandbox } from "./opened.ts";

const ENDLESS = { kind: "script", source: "for (;;);", input: null } as const;

/** The processor time of all child processes that are gone, in hundredths of a second. */
function timeOfGone(): number {
  const fields = readFileSync("/proc/self/stat", "latin1").split(") ").at(-1)?.split(" ").map(Number) ?? [];
  return (fields[13] ?? 0) + (fields[14] ?? 0);
}

test("a script has ten seconds of processor time, and more than that if it gets little of the processor", async () => {
  const child = startLocked("landlock");
  expect(await child.ready).toBe(true);
  expect(readFileSync(`/proc/${child.pid}/limits`, "latin1")).toMatch(/^Max cpu time +10 +11 +seconds/m);
  child.kill();
  // They share what there is: one that was stopped after a second of anybody's time would have less than its second.
  const count = 2 * availableParallelism();
  const sandbox = openSandbox({ time: { cpuSeconds: 1, runMs: 550_000 }, places: count, standby: 0 });
  const before = timeOfGone();
  const runs = Array.from({ length: count }, (_, at) =>
    sandbox.run(ENDLESS, { instanceId: String(at), signal: never }),
  );
  for (const run of runs) expect(await run).toMatchObject({ type: "killed", why: "deadline" });
  await sandbox.close();
  expect(timeOfGone() - before).toBeGreaterThan(count * 75);
});

test.each(["landlock", ...(Bun.which("bwrap") === null ? [] : ["bubblewrap" as const])] as const)(
  "a script that takes too long is stopped at its deadline, in %s: of the processor's time, or of anybody's",
  async (level) => {
    const why = async (time: Time) => {
      const outcome = await startLocked(level, null, undefined, time).run(ENDLESS, never);
      return outcome.type === "killed" ? outcome.why : outcome;
    };
    expect(await why({ cpuSeconds: 1, runMs: 60_000 })).toBe("deadline");
    expect(await why({ cpuSeconds: 60, runMs: 100 })).toBe("deadline");
  },
);
