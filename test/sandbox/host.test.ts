/** Scripts on the binary: nothing of them is left when the host ends, in whatever way. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { type RunningBinary, startBinary } from "../support/binary.ts";
import { ENDLESS, runsEndless, until } from "../support/endless-script.ts";
import { type MockAnswer, type MockModelServer, startMockModelServer } from "../support/mock-model-server.ts";
import { scriptsOf } from "../support/processes.ts";

let mock: MockModelServer;
beforeAll(() => {
  const call = (code: string): MockAnswer => ({
    kind: "tools",
    calls: [{ name: "run_javascript", arguments: { code } }],
  });
  mock = startMockModelServer({
    answer({ body }) {
      const last = body.messages.at(-1);
      if (last.role === "tool") return { kind: "text", tokens: [last.content] };
      return call(last.content);
    },
  });
});
afterAll(() => mock.stop());

/** A host with an agent that runs what it is sent. */
async function startHost(): Promise<{ server: RunningBinary; send(code: string): Promise<{ message: string }> }> {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-scripts-"));
  const { store, links } = openFoundation({ dataDir });
  const link = links.create("ada@example.com", 10_000_000n);
  store.close();
  const server = await startBinary({ dataDir, env: { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url } });
  void server.process.exited.then(() => rmSync(dataDir, { recursive: true, force: true }));
  let token = "";
  const post = async (path: string, body: object) => {
    const headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
    const answer = await fetch(new URL(path, server.url), { method: "POST", headers, body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, string>;
  };
  token = (await post("/v1/auth/redeem-link", { link })).token ?? "";
  const { instanceId } = await post("/v1/instances", { name: "home" });
  const { agentId } = await post(`/v1/instances/${instanceId}/agents`, { name: "Ada" });
  return {
    server,
    send: async (code) =>
      (await post(`/v1/instances/${instanceId}/agents/${agentId}/messages`, { message: code })) as { message: string },
  };
}

test("the binary runs a script for an agent, says its level, and starts nothing before the first script", async () => {
  const { server, send } = await startHost();
  await using _ = server;
  expect(await (await fetch(new URL("/readyz", server.url))).json()).toEqual({ status: "ready", sandbox: "landlock" });
  await until(() => scriptsOf(server.process.pid).length === 0);
  expect((await send("6 * 7")).message).toBe("result: 42");
  await until(() => scriptsOf(server.process.pid).length > 0);
  expect(await server.stop()).toBe(0);
});

test("a host that is asked to end leaves no script behind, and ends in time", async () => {
  const { server, send } = await startHost();
  await using _ = server;
  await send("1");
  const endless = send(ENDLESS).catch(() => null);
  const host = server.process.pid;
  await until(() => scriptsOf(host).some(runsEndless));
  expect(await server.stop()).toBe(0);
  await endless;
  expect(scriptsOf(host)).toEqual([]);
});

test("a host that is killed takes its scripts with it", async () => {
  const { server, send } = await startHost();
  await using _ = server;
  await send("1");
  const endless = send(ENDLESS).catch(() => null);
  const host = server.process.pid;
  await until(() => scriptsOf(host).some(runsEndless));
  await server.kill();
  await endless;
  await until(() => scriptsOf(host).length === 0);
});
