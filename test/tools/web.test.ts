import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pino } from "pino";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const SECRET = 's3cr3t/va+lue"=&é';

const SKILL = (host: string) => `---
name: notes-api
description: Keeps notes on a server. Use when the user asks for notes.
metadata:
  requires-secrets: "NOTES_TOKEN"
  requires-hosts: "${host}"
---
# Notes
`;

/** A server that sends back everything it gets, in every encoding. */
const echo = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/page") {
      return new Response(
        `<html><head><title>Notes</title></head><body><h1>Notes</h1><p>About <b>birds</b>.</p></body></html>`,
        {
          headers: { "Content-Type": "text/html; charset=utf-8" },
        },
      );
    }
    const sent = { url: request.url, headers: Object.fromEntries(request.headers), body: await request.text() };
    seen.push(sent);
    const token = decodeURIComponent(url.searchParams.get("q") ?? "");
    const forms = [
      SECRET,
      btoa(unescape(encodeURIComponent(`user:${SECRET}`))),
      Buffer.from(SECRET).toString("hex"),
      encodeURIComponent(SECRET),
      Bun.escapeHTML(SECRET),
    ];
    return Response.json({ sent, token, forms }, { headers: { "X-Echo": encodeURIComponent(SECRET) } });
  },
});
const seen: { url: string; headers: Record<string, string>; body: string }[] = [];
const host = `127.0.0.1:${echo.port}`;
const mock = startMockModelServer();
const lines: string[] = [];
let server: TestServer;
let person: Person;
let at = "";

beforeAll(async () => {
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  server = await startTestServer(
    { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url, ROOST_EGRESS: host },
    { log },
  );
  person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  const instance = `/v1/instances/${instanceId}`;
  await person.ask("POST", `${instance}/secrets`, { key: "NOTES_TOKEN", value: SECRET });
  await person.ask("POST", `${instance}/skills`, { files: { "SKILL.md": SKILL(host) } });
  const { agentId } = (await person.ask("POST", `${instance}/agents`, { name: "Ada" })).body;
  at = `${instance}/agents/${agentId}`;
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
  await echo.stop(true);
});

/** Lets the model make this call, and returns what it was told. */
async function call(name: string, args: object): Promise<string> {
  const before = mock.requests.length;
  mock.script({ kind: "tools", calls: [{ name, arguments: args }] }, { kind: "text", tokens: ["Done."] });
  const answer = await person.ask("POST", `${at}/messages`, { message: "Please do." });
  expect(answer.status).toBe(200);
  return mock.requests[before + 1]?.body.messages.at(-1).content;
}

describe("an agent of a real host", () => {
  test("reads a web page as Markdown", async () => {
    expect(await call("web_fetch", { url: `http://${host}/page` })).toBe(
      `URL: http://${host}/page\nTitle: Notes\n\n# Notes\n\nAbout **birds**.`,
    );
  });

  test("sends a secret that it never sees, and that nothing keeps", async () => {
    const told = await call("http_request", {
      method: "POST",
      url: `http://${host}/notes?q={{secret:NOTES_TOKEN}}`,
      headers: { "X-Body": "yes" },
      body: { token: "{{secret:NOTES_TOKEN}}" },
    });
    expect(JSON.parse(seen.at(-1)?.body ?? "")).toEqual({ token: SECRET });
    expect(new URL(seen.at(-1)?.url ?? "").searchParams.get("q")).toBe(SECRET);
    expect(told).toContain("Status: 200 OK");
    expect(told).toContain("[secret NOTES_TOKEN]");
    const events = await (await person.fetch("GET", `${at}/messages`)).text();
    for (const text of [told, events, lines.join("")]) {
      for (const form of [
        SECRET,
        encodeURIComponent(SECRET),
        Buffer.from(SECRET).toString("hex"),
        JSON.stringify(SECRET).slice(1, -1),
      ]) {
        expect(text).not.toContain(form);
      }
    }
  });

  test("is told why it may not reach another host", async () => {
    expect(await call("http_request", { method: "GET", url: "https://example.org/" })).toContain(
      "no installed skill declares it",
    );
    expect(await call("web_fetch", { url: "http://169.254.169.254/latest/meta-data" })).toContain("ROOST_EGRESS");
  });
});
