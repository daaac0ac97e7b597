import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { type MockAnswer, startMockModelServer } from "../support/mock-model-server.ts";
import { canServeNames, SILENT, startAttackersNames } from "../threats/name-server.ts";
import { countsOf, inLanes } from "./connection.ts";
import { startWorld } from "./world.ts";

const MIB = 1024 * 1024;
const AGENT = { name: "x", useDefaults: false, model: "openai:own" };
const DONE: MockAnswer = { kind: "text", tokens: ["Done."] };

/** Pages that hold up whoever reads them, and one that does not. */
function startPages() {
  const asked: string[] = [];
  const hanging: (() => void)[] = [];
  const bomb = gzipSync(Buffer.alloc(64 * MIB));
  const html = { "Content-Type": "text/html" };
  const pages = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      if (pathname === "/bomb") return new Response(bomb, { headers: { ...html, "Content-Encoding": "gzip" } });
      if (pathname === "/deep") return new Response("<div>".repeat(20_000), { headers: html });
      if (pathname === "/wide") return new Response("<p>a, and b</p>".repeat(300_000), { headers: html });
      if (pathname === "/hang") await new Promise<void>((resolve) => hanging.push(resolve));
      return new Response("<p>quick</p>", { headers: html });
    },
  });
  return {
    asked,
    hanging: () => hanging.length,
    host: `127.0.0.1:${pages.port}`,
    url: (path: string) => `http://127.0.0.1:${pages.port}${path}`,
    [Symbol.asyncDispose]: async () => {
      for (const letGo of hanging) letGo();
      await pages.stop(true);
    },
  };
}

/** A model that lets its agent fetch these pages, all at once, and then is content. No two calls are the same. */
const modelThatFetches = (urls: () => string[]) =>
  startMockModelServer({
    record: false,
    answer: ({ body }) =>
      body.messages.at(-1).role === "tool"
        ? DONE
        : {
            kind: "tools",
            calls: urls().map((url, at) => ({ name: "web_fetch", arguments: { url: `${url}?${at}` } })),
          },
  });

test("an account's agents hold all its connections, and read pages that take for ever: another's pages are read", async () => {
  await using pages = startPages();
  const model = modelThatFetches(() => ["/hang", "/hang", "/hang", "/deep", "/deep", "/wide"].map(pages.url));
  await using world = await startWorld({ env: { ROOST_EGRESS: `${pages.host},127.0.0.1:${model.port}` } });
  const { attacker, mock } = world;
  const instanceId = await attacker.newInstance();
  await attacker.ask("POST", `/v1/instances/${instanceId}/secrets`, { key: "OPENAI_BASE_URL", value: model.url });
  const agents = await inLanes(4, 8, (at) => attacker.newAgent(instanceId, { ...AGENT, slug: `a${at}` }));
  await world.attack(async () => {
    const sent = await inLanes(8, 16, (at) =>
      attacker.ask("POST", `${agents[at % 8]}/messages`, { message: "Go" }, { Prefer: "respond-async" }),
    );
    expect(countsOf(sent.map(({ status }) => status))).toEqual({ 202: 16 });
    while (pages.hanging() < 8) await new Promise(setImmediate);
    // The neighbour's own model lets it read a page, too.
    mock.script({ kind: "tools", calls: [{ name: "web_fetch", arguments: { url: pages.url("/neighbour") } }] });
    while (!pages.asked.includes("/neighbour")) await new Promise(setImmediate);
  });
  await world.expectUnharmed({ mostMiB: 400 });
  await model.stop();
});

test.skipIf(!canServeNames())(
  "an account's agents ask for pages at names for which nobody answers: another's messages are answered meanwhile",
  async () => {
    const names = await startAttackersNames();
    const left = [...SILENT];
    const model = modelThatFetches(() => left.splice(0, 4).map((name) => `http://${name}/`));
    const env = { ROOST_EGRESS: `public,127.0.0.1:${model.port}` };
    await using world = await startWorld({ under: names.under, env });
    const { attacker } = world;
    const instanceId = await attacker.newInstance();
    await attacker.ask("POST", `/v1/instances/${instanceId}/secrets`, { key: "OPENAI_BASE_URL", value: model.url });
    const agents = await inLanes(4, 8, (at) => attacker.newAgent(instanceId, { ...AGENT, slug: `a${at}` }));
    await world.attack(async () => {
      for (const agent of agents)
        await attacker.ask("POST", `${agent}/messages`, { message: "Go" }, { Prefer: "respond-async" });
      // As many as an account may ask at once.
      while (SILENT.filter((name) => names.asked(name) > 0).length < 16) await new Promise(setImmediate);
    });
    await world.expectUnharmed();
    await model.stop();
    names.close();
  },
);

test("an account's agents fetch bombs: memory stays within bounds, and another's requests are answered", async () => {
  await using pages = startPages();
  const model = modelThatFetches(() => Array.from({ length: 8 }, () => pages.url("/bomb")));
  await using world = await startWorld({ env: { ROOST_EGRESS: `${pages.host},127.0.0.1:${model.port}` } });
  const { attacker } = world;
  const instanceId = await attacker.newInstance();
  await attacker.ask("POST", `/v1/instances/${instanceId}/secrets`, { key: "OPENAI_BASE_URL", value: model.url });
  const agents = await inLanes(4, 8, (at) => attacker.newAgent(instanceId, { ...AGENT, slug: `a${at}` }));
  const answers = await world.attack(() =>
    inLanes(8, 8, (at) => attacker.ask("POST", `${agents[at]}/messages`, { message: "Go" })),
  );
  expect(countsOf(answers.map(({ status }) => status))).toEqual({ 200: 8 });
  // What has waited for its account's share of the host until its deadline is not asked any more.
  expect(pages.asked.length).toBeGreaterThan(32);
  await world.expectUnharmed();
  await model.stop();
});
