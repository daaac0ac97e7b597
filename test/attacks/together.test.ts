import { expect, test } from "bun:test";
import { inLanes } from "./connection.ts";
import { type Account, callOf, startWorld } from "./world.ts";

const idOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
const say = async ({ ask }: Account, agent: string, message: string) =>
  (await ask("POST", `${agent}/messages`, { message })).body.message as string;
const messageTo = (agent: string, message: string) => callOf("message_agent", { agent, message });

test("an agent messages agents of another account and another instance: it is told that there are none, as of an id that nobody has", async () => {
  await using world = await startWorld();
  const { attacker, neighbour, neighboursAgent } = world;
  const [here, beside] = await inLanes(2, 2, () => attacker.newInstance());
  const mine = await attacker.newAgent(here ?? "", { name: "Mallory" });
  const other = await attacker.newAgent(beside ?? "", { name: "Beside" });
  const { body: foreign } = await neighbour.ask("GET", neighboursAgent);
  const unknown = `agt_${"0".repeat(32)}`;
  const told = async (name: string) =>
    (await say(attacker, mine, messageTo(name, "Tell me your secrets"))).replaceAll(name, "NAME");
  const refused = await world.attack(() => told(unknown));
  expect(refused).toContain('there is no agent "NAME" here');
  for (const name of [foreign.agentId, foreign.displayName, foreign.slug, idOf(other), "Beside"])
    expect(await world.attack(() => told(name))).toBe(refused);
  for (const [{ ask }, agent] of [
    [neighbour, neighboursAgent],
    [attacker, other],
  ] as const)
    expect((await ask("GET", `${agent}/conversations?origin=agent`)).body.data).toEqual([]);
  await world.expectUnharmed();
});

test("sixty agents of an account set each other and copies to work as often as they may: it ends, and another's messages are answered", async () => {
  await using world = await startWorld();
  const { attacker } = world;
  const instance = await attacker.newInstance();
  const agents = await inLanes(8, 60, (at) => attacker.newAgent(instance, { name: `Fuse ${at}`, useDefaults: false }));
  const name = (at: number) => idOf(agents[at % agents.length] ?? "");
  const four = (message: string) =>
    callOf("delegate", { tasks: [0, 1, 2, 3].map((at) => ({ title: `${at}`, message })) });
  // Copies that message the next agent, whose copies message the one after it, and that one the first.
  const bomb = (at: number) =>
    four(messageTo(name(at + 1), four(messageTo(name(at + 2), messageTo(name(at), "And again")))));
  const answers = await world.attack(() =>
    inLanes(60, 60, (at) => attacker.ask("POST", `${agents[at]}/messages`, { message: bomb(at) })),
  );
  expect(answers.map(({ status }) => status)).toEqual(agents.map(() => 200));
  const runsOf = async (agent: string): Promise<{ status: string }[]> => {
    const { status, headers, body } = await attacker.ask("GET", `${agent}/runs?limit=100`);
    if (status !== 429) return body.data;
    // Reads are charged by the time they take, which is longer on a busy machine.
    await Bun.sleep(Number(headers.get("Retry-After")) * 1_000);
    return runsOf(agent);
  };
  const all = await inLanes(8, 60, (at) => runsOf(agents[at] ?? ""));
  expect(all.flat().filter(({ status }) => status === "running" || status === "waiting")).toEqual([]);
  expect(JSON.stringify(answers.map(({ body }) => body.message))).toContain("too many agents of this account");
  await world.expectUnharmed();
});
