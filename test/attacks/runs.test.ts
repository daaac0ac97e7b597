import { expect, test } from "bun:test";
import { verified } from "../payments/paying.ts";
import { openChain } from "../support/chain-that-answers.ts";
import { countsOf, inLanes } from "./connection.ts";
import { HANG, startWorld } from "./world.ts";

const KIB = 1024;
const THREADS = 80;
/** A user of its own: threads are counted by user. */
const USER = 40_000 + (process.pid % 20_000);
const AGENT = { name: "x", useDefaults: false };
const canLimitThreads =
  process.platform === "linux" &&
  process.getuid?.() === 0 &&
  Bun.which("setpriv") !== null &&
  Bun.which("prlimit") !== null;

test.skipIf(!canLimitThreads)(
  "where few threads may be started, an account wakes a hundred instances: all answer, nobody is told of threads (skipped for who is not root: its threads are counted together with everything else it runs)",
  async () => {
    const under = ["prlimit", `--nproc=${THREADS}`, "setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"];
    await using world = await startWorld({ under, owner: USER, cwd: "/" });
    const { attacker, server } = world;
    const agents = await inLanes(8, 100, async () => attacker.newAgent(await attacker.newInstance(), AGENT));
    const answers = await world.attack(() =>
      inLanes(100, 100, (at) => attacker.ask("POST", `${agents[at]}/messages`, { message: "Hello" })),
    );
    expect(countsOf(answers.map(({ status }) => status))).toEqual({ 200: 100 });
    expect(JSON.stringify(server.logs)).not.toContain("Failed to spawn");
    // Its 64 workers take 132 to 146 MiB at their most, of which the pages of the runtime's file are a part that varies.
    await world.expectUnharmed({ mostMiB: 170 });
    expect(server.errors()).toBe("");
  },
);

test("an account's 270 agents wait for a model that hangs: another's message is answered, and its payment checked", async () => {
  await using chain = openChain();
  await using world = await startWorld({ env: { ROOST_NETWORKS: "base", ROOST_BASE_RPC_URL: chain.url } });
  const { attacker, neighbour, mock } = world;
  const instances = await inLanes(3, 3, () => attacker.newInstance());
  const agents = await inLanes(8, 270, (at) =>
    attacker.newAgent(instances[at % 3] ?? "", { ...AGENT, slug: `a${at}` }),
  );
  await world.attack(async () => {
    const sent = await inLanes(32, 270, (at) =>
      attacker.ask("POST", `${agents[at]}/messages`, { message: HANG }, { Prefer: "respond-async" }),
    );
    expect(countsOf(sent.map(({ status }) => status))).toEqual({ 202: 270 });
    await mock.arrived(64);
  });
  const proof = { txHash: `0x${"1".repeat(64)}`, network: "base" };
  const header = { "X-PAYMENT": JSON.stringify(proof) };
  const paid = await verified(() => neighbour.ask("POST", "/v1/billing/top-up", {}, header));
  expect([paid.status, paid.body.error.message]).toEqual([402, expect.stringContaining("no such transaction")]);
  expect(chain.calls("eth_getTransactionReceipt")).toBeGreaterThan(0);
  await world.expectUnharmed();
});

test("an account has a hundred skills of 150 KiB and chats: memory does not grow with their text", async () => {
  await using world = await startWorld();
  const { attacker } = world;
  const instanceId = await attacker.newInstance();
  const agents = await inLanes(4, 8, (at) => attacker.newAgent(instanceId, { ...AGENT, slug: `a${at}` }));
  const text = "x".repeat(150 * KIB);
  const installed = await inLanes(4, 100, (at) => {
    const head = `---\nname: skill-${at}\ndescription: Does nothing, at length.\n---\n`;
    return attacker.ask("POST", `/v1/instances/${instanceId}/skills`, { files: { "SKILL.md": head + text } });
  });
  expect(countsOf(installed.map(({ status }) => status))).toEqual({ 201: 100 });
  const answers = await world.attack(() =>
    inLanes(8, 240, (at) => attacker.ask("POST", `${agents[at % 8]}/messages`, { message: `Hello ${at}` })),
  );
  expect(countsOf(answers.map(({ status }) => status))).toEqual({ 200: 240 });
  await world.expectUnharmed();
});
