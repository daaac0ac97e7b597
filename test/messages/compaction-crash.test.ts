import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { isSummary, kindsOf, readEvents } from "./conversation.ts";

/** The server in a process of its own, with a conversation that is too long. It lives until it is killed. */
const PROGRAM = `
  const { startTestServer } = await import(${JSON.stringify(join(import.meta.dir, "../support/test-server.ts"))});
  const { longTalk, writeMessages } = await import(${JSON.stringify(join(import.meta.dir, "long-conversation.ts"))});
  const { modelUrl, dataDir } = JSON.parse(process.argv[1]);
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: modelUrl };
  const server = await startTestServer(settings, { dataDir, tools: [] });
  const person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "one" })).body;
  const { agentId } = (await person.ask("POST", "/v1/instances/" + instanceId + "/agents", { name: "Ada" })).body;
  writeMessages(server, agentId, longTalk(400));
  const path = "/v1/instances/" + instanceId + "/agents/" + agentId;
  process.stdout.write(JSON.stringify({ token: person.token, path }) + "\\n");
  await person.ask("POST", path + "/messages", { message: "go on" }, { Prefer: "respond-async" });
  await new Promise(() => {});
`;

test("a host that is killed while a model summarises makes the summary again, once, and answers", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-compaction-"));
  let hangs = true;
  let server: TestServer | undefined;
  const mock = startMockModelServer({
    models: null,
    answer: ({ body }) =>
      isSummary(body) && hangs ? { kind: "hang" } : { kind: "text", tokens: ["They talked of houses."] },
  });
  try {
    const asked = JSON.stringify({ modelUrl: mock.url, dataDir });
    const child = Bun.spawn([process.execPath, "-e", PROGRAM, asked], { stdout: "pipe", stderr: "inherit" });
    await mock.arrived(1);
    child.kill("SIGKILL");
    const { token, path } = JSON.parse(await new Response(child.stdout).text());
    await child.exited;
    hangs = false;
    const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
    server = await startTestServer(settings, { dataDir, tools: [] });
    const headers = { Authorization: `Bearer ${token}` };
    await using stream = readEvents(await fetch(`${server.url}${path}/events?after=0`, { headers }));
    const kinds = kindsOf(await stream.until(({ event }) => event === "run.completed"));
    expect(kinds.filter((kind) => kind.startsWith("context."))).toEqual(["context.compacted"]);
    const stored = server.foundation.store.sqlite.query("SELECT count(*) AS n FROM summaries").get();
    expect(stored).toEqual({ n: 1 });
    const last = mock.requests.at(-1)?.body.messages[0].content;
    expect(last).toContain("They talked of houses.");
  } finally {
    await server?.stop();
    await mock.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
