import { median, type Row } from "./figure.ts";
import { startHost, startMock } from "./host.ts";
import { type Load, runLoad } from "./load.ts";

const CONNECTIONS = 64;
/** Of one connection: so many agents, so many messages to each, so that no conversation grows long. */
const ROUNDS = 12;
const EACH = 25;
/** As fast, but for what two runs of the same differ by. */
const AS_FAST = 1.15;

/** What OpenAI's API in front of an agent costs beside a message to it, and beside the model server called directly. */
export async function benchOpenAi(): Promise<Row[]> {
  await using mock = await startMock();
  await using host = await startHost({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url });
  const { instanceId } = await host.ask("POST", "/v1/instances", { name: "bench" });
  let made = 0;
  const newAgents = async (count: number) => {
    const agents: string[] = [];
    for (let at = 0; at < count; at++) {
      const name = `agent${made++}`;
      agents.push((await host.ask("POST", `/v1/instances/${instanceId}/agents`, { name, slug: name })).agentId ?? "");
    }
    return agents;
  };
  const call = (url: string, path: string, body: object, until?: string): Load => ({
    url,
    method: "POST",
    path,
    headers: { "X-API-Key": host.key, "Content-Type": "application/json" },
    body: JSON.stringify(body),
    connections: 1,
    requests: EACH,
    seconds: 60,
    ...(until === undefined ? {} : { until }),
  });
  const waysOf = (stream: boolean): Record<Way, Load> => {
    const native = `/v1/instances/${instanceId}/agents/{agent}/messages`;
    const chat = (model: string) => ({ model, stream, messages: [{ role: "user", content: "Hello" }] });
    const done = stream ? "[DONE]" : undefined;
    return {
      native: call(host.server.url, native, { message: "Hello", stream }, stream ? "event: run.completed" : undefined),
      openai: call(host.server.url, "/v1/chat/completions", chat("{agent}"), done),
      direct: call(new URL(mock.url).origin, "/v1/chat/completions", chat("mock"), done),
    };
  };
  const rows: Row[] = [];
  for (const stream of [false, true]) {
    const answers = stream ? "streamed chat completion" : "chat completion";
    const ways = waysOf(stream);
    const one = await inTurn(
      ways,
      () => newAgents(1),
      ROUNDS,
      async (load) => (await runLoad(load)).latenciesMs,
    );
    const ms = { native: median(one.native), openai: median(one.openai), direct: median(one.direct) };
    rows.push(
      {
        figure: `${answers}, 1 connection, p50`,
        value: ms.openai,
        unit: "ms",
        baseline: { what: "message", value: ms.native },
        goal: `≤ ${AS_FAST} × message`,
        met: ms.openai <= AS_FAST * ms.native,
      },
      { figure: "the same", value: ms.openai, unit: "ms", baseline: { what: "direct call", value: ms.direct } },
    );
    const atOnce = { connections: CONNECTIONS, requests: EACH * CONNECTIONS };
    const many = await inTurn(
      ways,
      () => newAgents(CONNECTIONS),
      3,
      async (load) => {
        const { perSecond, failures } = await runLoad({ ...load, ...atOnce });
        if (failures > 0) throw new Error(`${failures} requests to ${load.path} failed`);
        return [perSecond];
      },
    );
    const rate = { native: median(many.native), openai: median(many.openai), direct: median(many.direct) };
    rows.push(
      {
        figure: `${answers}s, 64 connections`,
        value: rate.openai,
        unit: "answers/s",
        baseline: { what: "messages", value: rate.native },
        goal: `≥ messages ÷ ${AS_FAST}`,
        met: rate.openai >= rate.native / AS_FAST,
      },
      { figure: "the same", value: rate.openai, unit: "answers/s", baseline: { what: "direct", value: rate.direct } },
    );
  }
  return rows;
}

type Way = "native" | "openai" | "direct";

/** One way after the other, again and again with new agents, so that a change of the machine's speed falls on all. */
async function inTurn(
  ways: Record<Way, Load>,
  newAgents: () => Promise<string[]>,
  rounds: number,
  measure: (load: Load) => Promise<number[]>,
): Promise<Record<Way, number[]>> {
  const measured: Record<Way, number[]> = { native: [], openai: [], direct: [] };
  for (let round = 0; round <= rounds; round++) {
    const agents = await newAgents();
    for (const [way, load] of Object.entries(ways) as [Way, Load][]) {
      const values = await measure({ ...load, agents });
      // The first round warms up.
      if (round > 0) measured[way].push(...values);
    }
  }
  return measured;
}
