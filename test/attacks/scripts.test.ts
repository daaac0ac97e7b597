import { expect, test } from "bun:test";
import { scriptsOf } from "../support/processes.ts";
import { countsOf, inLanes } from "./connection.ts";
import { callOf, SCRIPT, startWorld } from "./world.ts";

const AGENT = { name: "x", useDefaults: false };
const BOMBS = [
  "for (;;);",
  "const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))",
  "for (;;) console.log('x'.repeat(1000))",
  "let s = 'x'; for (;;) s += s",
];

test("an account's forty instances run endless and greedy scripts: another's are run in between, and few run at once", async () => {
  await using world = await startWorld();
  const { attacker, neighbour, neighboursAgent, server } = world;
  const agents = await inLanes(8, 40, async () => attacker.newAgent(await attacker.newInstance(), AGENT));
  let most = 0;
  const answers = await world.attack(async () => {
    const sent = await inLanes(40, 40, (at) => {
      const message = `${SCRIPT}${BOMBS[at % BOMBS.length]}`;
      return attacker.ask("POST", `${agents[at]}/messages`, { message }, { Prefer: "respond-async" });
    });
    expect(countsOf(sent.map(({ status }) => status))).toEqual({ 202: 40 });
    const own = [];
    for (let n = 0; n < 3; n++) {
      const message = callOf("run_javascript", { code: "6 * 7" });
      own.push(await neighbour.ask("POST", `${neighboursAgent}/messages`, { message }));
      most = Math.max(most, scriptsOf(server.process.pid).length);
    }
    return own;
  });
  expect(answers.map(({ status, body }) => ({ status, message: body.message }))).toEqual(
    answers.map(() => ({ status: 200, message: "result: 42" })),
  );
  expect(most).toBeLessThanOrEqual(8 + 2);
  await world.expectUnharmed();
  expect(scriptsOf(server.process.pid)).toEqual([]);
});
