import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { median, percentile, type Row } from "./figure.ts";
import { startHost, startMock } from "./host.ts";
import { type Load, runLoad } from "./load.ts";

const CONNECTIONS = 64;
/** So many questions, each with its answer, are more messages than a prompt considers. */
const FULL = 520;
/** Messages to each agent in turn: too few to fill a prompt that was empty. */
const EACH = 20;
/** So many agents are asked one after the other. */
const ONE_BY_ONE = 15;

/** What a durable write cannot be faster than: of 4 KiB, in milliseconds. */
function diskSyncMs(folder: string): number {
  const path = join(folder, "sync");
  const file = openSync(path, "w");
  const took: number[] = [];
  for (let round = 0; round < 100; round++) {
    writeSync(file, Buffer.alloc(4096, round), 0, 4096, 0);
    const begun = performance.now();
    fdatasyncSync(file);
    took.push(performance.now() - begun);
  }
  closeSync(file);
  unlinkSync(path);
  return median(took);
}

/** What a message costs over calling the same instant model server directly: to the first token, and at full load. */
export async function benchMessages(seconds = 5): Promise<Row[]> {
  await using mock = await startMock();
  await using host = await startHost({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url });
  const { instanceId } = await host.ask("POST", "/v1/instances", { name: "bench" });
  // One connection for each agent, since an agent answers one message at a time.
  const newAgents = async (name: string, count = CONNECTIONS) => {
    const agents: string[] = [];
    for (let number = 0; number < count; number++) {
      const created = await host.ask("POST", `/v1/instances/${instanceId}/agents`, {
        name: `${name}${number}`,
        slug: `${name}${number}`,
      });
      agents.push(created.agentId ?? "");
    }
    return agents;
  };
  const [busy, fresh] = [await newAgents("busy"), await newAgents("fresh")];
  const quiet = await newAgents("quiet", ONE_BY_ONE);
  const headers = { "X-API-Key": host.key, "Content-Type": "application/json" };
  const through = (agent: string): Load => ({
    url: host.server.url,
    method: "POST",
    path: `/v1/instances/${instanceId}/agents/${agent}/messages`,
    headers,
    body: JSON.stringify({ message: "Hello", stream: true }),
    connections: 1,
    requests: 300,
    seconds,
    first: "message.delta",
    until: "event: run.completed",
  });
  const direct: Load = {
    url: new URL(mock.url).origin,
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ model: "mock", stream: true, messages: [{ role: "user", content: "Hello" }] }),
    connections: 1,
    requests: 300,
    seconds,
    first: "data:",
    until: "[DONE]",
  };
  await runLoad({ ...through(busy[0] ?? ""), requests: 300 });
  const one: number[] = [];
  for (const agent of quiet) one.push(...(await runLoad({ ...through(agent), requests: EACH })).latenciesMs);
  const oneFull = (await runLoad(through(busy[0] ?? ""))).latenciesMs;
  const oneDirect = (await runLoad(direct)).latenciesMs;

  const many = (agents: string[], requests: number) =>
    runLoad({ ...through("{agent}"), agents, connections: CONNECTIONS, requests, seconds: 60 });
  await many(busy, FULL * CONNECTIONS);
  const short = await many(fresh, EACH * CONNECTIONS);
  const full = await many(busy, EACH * CONNECTIONS);
  const manyDirect = await runLoad({ ...direct, connections: CONNECTIONS, requests: Number.MAX_SAFE_INTEGER });
  const overhead50 = median(one) - median(oneDirect);
  const overhead99 = percentile(one, 0.99) - percentile(oneDirect, 0.99);
  return [
    {
      figure: "message overhead to the first token, 1 connection, p50",
      value: overhead50,
      unit: "ms",
      baseline: { what: "direct call", value: median(oneDirect) },
      goal: "≤ 1 ms",
      met: overhead50 <= 1,
    },
    {
      figure: "the same, p99",
      value: overhead99,
      unit: "ms",
      baseline: { what: "direct call", value: percentile(oneDirect, 0.99) },
      goal: "≤ 10 ms",
      met: overhead99 <= 10,
    },
    {
      figure: "the same after 300 exchanges, p50",
      value: median(oneFull) - median(oneDirect),
      unit: "ms",
      baseline: { what: "short prompts", value: overhead50 },
    },
    { figure: "a sync of this disk, p50", value: diskSyncMs(host.dataDir), unit: "ms" },
    {
      figure: "messages, 64 connections",
      value: short.perSecond,
      unit: "messages/s",
      baseline: { what: "direct calls", value: manyDirect.perSecond },
      goal: "≥ 3,000 messages/s",
      met: short.perSecond >= 3_000,
    },
    { figure: "the same, first token p99", value: percentile(short.latenciesMs, 0.99), unit: "ms" },
    {
      figure: "messages, 64 connections, full prompts",
      value: full.perSecond,
      unit: "messages/s",
      baseline: { what: "short prompts", value: short.perSecond },
      goal: "≥ 0.8 × short prompts",
      met: full.perSecond >= 0.8 * short.perSecond,
    },
  ];
}
