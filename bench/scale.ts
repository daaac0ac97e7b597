import { median, percentile, type Row, residentMiB } from "./figure.ts";
import { type BenchHost, startHost, startMock } from "./host.ts";

const INSTANCES = 1_000;
/** More than stay awake for one account. */
const WOKEN = 100;
const STREAMS = 1_000;

/** A thousand instances: their memory while asleep, their effect on a list and a get, and the time to wake one. */
export async function benchScale(): Promise<Row[]> {
  await using mock = await startMock();
  await using host = await startHost({
    ROOST_MODEL: "openai:mock",
    ROOST_OPENAI_BASE_URL: mock.url,
    ROOST_IDLE_SECONDS: "1",
  });
  const few = await makeInstances(host, 10);
  const listFew = await timeOf(() => host.ask("GET", "/v1/instances"), 50);
  const getFew = await timeOf(() => host.ask("GET", `/v1/instances/${few[0]}`), 50);
  const before = residentMiB(host.server.process.pid);
  const many = await makeInstances(host, INSTANCES - 10);
  const over = residentMiB(host.server.process.pid) - before;
  const list = await timeOf(() => host.ask("GET", "/v1/instances"), 50);
  const get = await timeOf(() => host.ask("GET", `/v1/instances/${few[0]}`), 50);
  return [
    {
      figure: "1,000 running instances asleep, over 10",
      value: over,
      unit: "MiB",
      goal: "≤ 150 MiB",
      met: over <= 150,
    },
    {
      figure: "list of instances at 1,000",
      value: list,
      unit: "ms",
      baseline: { what: "at 10", value: listFew },
      goal: "as fast as with 10",
    },
    {
      figure: "get of an instance at 1,000",
      value: get,
      unit: "ms",
      baseline: { what: "at 10", value: getFew },
      goal: "as fast as with 10",
    },
    ...(await benchWake(host, many.slice(0, WOKEN))),
    ...(await benchStreams()),
  ];
}

async function makeInstances(host: BenchHost, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let made = 0; made < count; made += 20) {
    const batch = Array.from({ length: Math.min(20, count - made) }, (_, at) =>
      host.ask("POST", "/v1/instances", { name: `i${made + at}` }),
    );
    ids.push(...(await Promise.all(batch)).map(({ instanceId }) => instanceId ?? ""));
  }
  return ids;
}

async function timeOf(work: () => Promise<unknown>, times: number): Promise<number> {
  const taken: number[] = [];
  for (let time = 0; time < times; time++) {
    const begun = performance.now();
    await work();
    taken.push(performance.now() - begun);
  }
  return median(taken);
}

/** From a message to a sleeping instance to its first token, one instance after the other. */
async function benchWake(host: BenchHost, instances: string[]): Promise<Row[]> {
  const agents = await Promise.all(
    instances.map(
      async (instanceId) =>
        ({ instanceId, ...(await host.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Ada" })) }) as Record<
          string,
          string
        >,
    ),
  );
  const asleep: number[] = [];
  const awake: number[] = [];
  for (const { instanceId, agentId } of agents) {
    const agent = `/v1/instances/${instanceId}/agents/${agentId}`;
    for (const times of [asleep, awake, awake]) times.push(await firstToken(host, agent));
  }
  const woken = median(asleep) - median(awake);
  return [
    {
      figure: "wake of a sleeping instance",
      value: woken,
      unit: "ms",
      baseline: { what: "first token awake", value: median(awake) },
      goal: "≤ 10 ms p50",
      met: woken <= 10,
    },
  ];
}

async function firstToken(host: BenchHost, agent: string): Promise<number> {
  const begun = performance.now();
  const response = await fetch(new URL(`${agent}/messages`, host.server.url), {
    method: "POST",
    headers: { "X-API-Key": host.key, "Content-Type": "application/json" },
    body: JSON.stringify({ message: "Hello", stream: true }),
  });
  let taken = Number.NaN;
  let text = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (Number.isNaN(taken) && text.includes("message.delta")) taken = performance.now() - begun;
  }
  return taken;
}

/** A thousand event streams on one agent; one message, and how long until everyone has its last event. */
async function benchStreams(): Promise<Row[]> {
  // A new host: memory freed by the thousand instances would hide what a stream takes.
  await using mock = await startMock();
  await using host = await startHost({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url });
  const { instanceId } = await host.ask("POST", "/v1/instances", { name: "streams" });
  const { agentId } = await host.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Loud" });
  const agent = `/v1/instances/${instanceId}/agents/${agentId}`;
  const { hostname, port, host: authority } = new URL(host.server.url);
  const before = residentMiB(host.server.process.pid);
  const delays: number[] = [];
  let sentAt = 0;
  const opened: Promise<void>[] = [];
  const heard: Promise<void>[] = [];
  const sockets: Bun.Socket[] = [];
  for (let number = 0; number < STREAMS; number++) {
    const open = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    opened.push(open.promise);
    heard.push(end.promise);
    let text = "";
    sockets.push(
      await Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open: (socket) =>
            void socket.write(`GET ${agent}/events HTTP/1.1\r\nHost: ${authority}\r\nX-API-Key: ${host.key}\r\n\r\n`),
          data(_, bytes) {
            text += bytes.toString("latin1");
            if (text.includes("retry:")) open.resolve();
            if (!text.includes("event: run.completed")) return;
            delays.push(performance.now() - sentAt);
            end.resolve();
          },
        },
      }),
    );
  }
  await Promise.all(opened);
  const each = ((residentMiB(host.server.process.pid) - before) * 1024) / STREAMS;
  sentAt = performance.now();
  await host.ask("POST", `${agent}/messages`, { message: "Hello" });
  const answered = performance.now() - sentAt;
  await Promise.all(heard);
  for (const socket of sockets) socket.end();
  const last = percentile(delays, 0.99) - answered;
  return [
    { figure: "1,000 event streams, each", value: each, unit: "KiB", goal: "≤ 20 KiB", met: each <= 20 },
    {
      figure: "one event to 1,000 streams at once, p99 behind its answer",
      value: last,
      unit: "ms",
      baseline: { what: "the answer itself", value: answered },
      goal: "≤ 200 ms",
      met: last <= 200,
    },
  ];
}
