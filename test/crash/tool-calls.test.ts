import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { UNKNOWN_OUTCOME } from "../../src/messages/runs/journal.ts";
import { type Frame, readEvents } from "../messages/conversation.ts";
import { type RunningBinary, startBinary } from "../support/binary.ts";
import { type MockAnswer, type MockRequest, startMockModelServer } from "../support/mock-model-server.ts";

/** Each run is killed eleven times: at each of its model calls, and at each call of a tool. */
const RUNS = Number(process.env.ROOST_TEST_KILLED_RUNS ?? 2);
const CALLS = 5;
const JSON_TYPE = { "Content-Type": "application/json" };

/** An agent on the compiled binary, whose five calls change something outside, and a world that kills the host. */
async function startWorld() {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-killed-"));
  let server: RunningBinary | undefined;
  /** Where it is still to be killed in this run, and whether before the answer to what it asked, or after it. */
  const deadly = new Set<string>();
  let isBefore = true;
  let kills = 0;
  /** Since the last start. */
  let isStruck = false;
  /** How often each call of this run came. */
  const made: number[] = [];

  function strike(place: string): void {
    if (!deadly.delete(place)) return;
    kills++;
    isStruck = true;
    const kill = () => server?.process.kill("SIGKILL");
    if (isBefore) kill();
    else setTimeout(kill, 1);
  }
  const web = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const at = Number(new URL(request.url).pathname.slice(1));
      made[at] = (made[at] ?? 0) + 1;
      strike(`call ${at}`);
      return new Response(`made ${at}`);
    },
  });
  const mock = startMockModelServer({
    answer({ body }: MockRequest): MockAnswer {
      const last = body.messages.findLastIndex(({ role }: { role: string }) => role === "user");
      const at = body.messages.slice(last).filter(({ role }: { role: string }) => role === "tool").length;
      strike(`model ${at}`);
      if (at === CALLS) return { kind: "text", tokens: ["Done."] };
      const url = `http://127.0.0.1:${web.port}/${at}`;
      return { kind: "tools", calls: [{ name: "http_request", arguments: { method: "POST", url } }] };
    },
  });

  const foundation = openFoundation({ dataDir });
  const link = foundation.links.create("ada@example.com", 100_000_000n);
  foundation.store.close();
  const env = {
    ROOST_MODEL: "openai:mock",
    ROOST_OPENAI_BASE_URL: mock.url,
    ROOST_EGRESS: `127.0.0.1:${web.port}`,
  };
  const start = async () => {
    server = await startBinary({ dataDir, env });
    return server.url;
  };
  let url = await start();
  let token = "";
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects and fails where it is not there
  const post = async (path: string, body: object, headers: Record<string, string> = {}): Promise<any> => {
    const all = { ...JSON_TYPE, Authorization: `Bearer ${token}`, ...headers };
    return await (await fetch(url + path, { method: "POST", headers: all, body: JSON.stringify(body) })).json();
  };
  token = (await post("/v1/auth/redeem-link", { link })).token;
  const { instanceId } = await post("/v1/instances", { name: "one" });
  const agents = `/v1/instances/${instanceId}/agents`;
  const { agentId } = await post(agents, { name: "Ada", tools: { http_request: "always" } });
  const agent = `${agents}/${agentId}`;

  async function revive(): Promise<void> {
    await server?.process.exited;
    isStruck = false;
    url = await start();
    // A run goes on before the host says that it listens: a blow of meanwhile has hit the process of before.
    if (isStruck) server?.process.kill("SIGKILL");
  }

  /** The run's events from its first to its last, however often the host has to be started for it. */
  async function follow(runId: string): Promise<Frame[]> {
    for (;;) {
      try {
        const headers = { Authorization: `Bearer ${token}` };
        const stream = readEvents(await fetch(`${url}${agent}/events?runId=${runId}`, { headers }));
        return await stream.until(({ event }) => event === "run.completed" || event === "run.failed");
      } catch (error) {
        if (!isStruck) throw error;
        await revive();
      }
    }
  }

  return {
    made,
    kills: () => kills,
    told: (): string[] =>
      mock.requests
        .at(-1)
        ?.body.messages.filter(({ role }: { role: string }) => role === "tool")
        .map(({ content }: { content: string }) => content) ?? [],
    async run(before: boolean): Promise<Frame[]> {
      isBefore = before;
      made.length = 0;
      await fetch(`${url}${agent}/messages`, { method: "DELETE", headers: { Authorization: `Bearer ${token}` } });
      const { runId } = await post(`${agent}/messages`, { message: "Do it" }, { Prefer: "respond-async" });
      // Only now: the host must have acknowledged the message.
      for (let at = 0; at <= CALLS; at++) deadly.add(`model ${at}`);
      for (let at = 0; at < CALLS; at++) deadly.add(`call ${at}`);
      const frames = await follow(runId);
      deadly.clear();
      // The run may have ended just before the blow.
      if (isStruck) await revive();
      return frames;
    },
    async [Symbol.asyncDispose]() {
      await server?.kill();
      await Promise.all([mock.stop(), web.stop(true)]);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

test(`killed ${RUNS * (2 * CALLS + 1)} times in ${RUNS} runs of five calls: none is made twice, each run ends, and its history is whole`, async () => {
  await using world = await startWorld();
  for (let run = 0; run < RUNS; run++) {
    const frames = await world.run(run % 2 === 0);
    expect(frames.at(-1)?.event).toBe("run.completed");
    expect(world.made.filter((times) => times > 1)).toEqual([]);
    const results = world.told();
    expect(results).toHaveLength(CALLS);
    const outcomes = frames.filter(({ event }) => event === "tool.completed");
    for (const [at, result] of results.entries()) {
      // What is known is what was answered. What was on its way is unknown to the model, and not tried again.
      if (result === UNKNOWN_OUTCOME) continue;
      expect(result).toContain(`made ${at}`);
      expect(outcomes.some(({ data }) => data.output.includes(`made ${at}`))).toBe(true);
    }
    const started = frames.filter(({ event }) => event === "tool.started").map(({ data }) => data.step);
    expect([...new Set(started)]).toEqual([1, 2, 3, 4, 5]);
  }
  // Early ones may be missing: the first answer can come before the message is acknowledged.
  expect(world.kills()).toBeGreaterThan(RUNS * 2 * CALLS - 1 - RUNS);
});
