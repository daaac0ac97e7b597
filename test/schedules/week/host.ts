/**
 * A whole server as a process of its own, whose clock its parent sets: `bun host.ts DATA_DIR MODEL_URL NOW`. Each message of
 * the parent says what time it is, and after how many turns of the event loop the process kills itself, if it is to.
 */
import { handClock } from "../../lib/hand-clock.ts";
import { startTestServer } from "../../support/test-server.ts";

/** What the parent says; `turns` is null for a host that is to live. */
export interface Moment {
  at: number;
  turns: number | null;
}

const [dataDir = "", model = "", now] = process.argv.slice(2);
const clock = handClock(Number(now));
const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: model };
const server = await startTestServer(settings, { dataDir, clock });

async function dieAfter(turns: number): Promise<never> {
  for (let left = turns; left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
  process.kill(process.pid, "SIGKILL");
  return await new Promise<never>(() => {});
}

process.on("message", async ({ at, turns }: Moment) => {
  clock.step(at - clock.now());
  const dying = turns === null ? null : dieAfter(turns);
  await server.app.scheduleTimer.tick();
  await dying;
  process.send?.("decided");
});
process.send?.(server.url);
