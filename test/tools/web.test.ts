import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pino } from "pino";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const SECRET = 's3cr3t/va+lue"=&é';
/** As servers may write it. */
const FORMS = [
  SECRET,
  encodeURIComponent(SECRET),
  JSON.stringify(SECRET).slice(1, -1),
  Bun.escapeHTML(SECRET),
  Buffer.from(SECRET).toString("hex"),
  Buffer.from(SECRET).toString("base64"),
  Buffer.from(`user:${SECRET}`).toString("base64url"),
];

const skill = (host: string) => `---
name: notes-api
description: Keeps notes on a server. Use when the user asks for notes.
metadata:
  requires-secrets: "NOTES_TOKEN"
  requires-hosts: "${host}"
---
# Notes
`;

/** Counts requests, and sends back everything that it gets, in all forms. */
const seen: { method: string; url: string; headers: Record<string, string>; body: string }[] = [];
const echo = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const { method, url } = request;
    seen.push({ method, url, headers: Object.fromEntries(request.headers), body: await request.text() });
    switch (pathname) {
      case "/page":
        return page("<title>Notes</title><h1>Notes</h1><p>About <b>birds</b>.</p>");
      case "/redirect":
        return new Response(null, { status: 307, headers: { Location: searchParams.get("to") ?? "" } });
      case "/image":
        return new Response(new Uint8Array(300), { headers: { "Content-Type": "image/png" } });
      case "/echo":
        return Response.json(
          { sent: seen.at(-1), forms: FORMS },
          { headers: { "X-Echo": encodeURIComponent(SECRET) } },
        );
      case "/again":
        return new Response(`${SECRET} `.repeat(30_000), {
          headers: { "X-Echo": `${encodeURIComponent(SECRET)} `.repeat(600) },
        });
      default:
        return new Response("nothing here", { status: 404 });
    }
  },
});
const page = (html: string) => new Response(html, { headers: { "Content-Type": "text/html; charset=utf-8" } });
/** Another origin, which the operator names, but no skill. */
const other = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request) => page(JSON.stringify([...request.headers])),
});

const at = (path: string) => `http://127.0.0.1:${echo.port}${path}`;
const elsewhere = (path: string) => `http://127.0.0.1:${other.port}${path}`;
const mock = startMockModelServer();
const logged: string[] = [];
let server: TestServer;
let person: Person;
let agent = "";
let instanceId = "";

beforeAll(async () => {
  const log = pino({ level: "trace" }, { write: (line: string) => void logged.push(line) });
  server = await startTestServer(
    {
      ROOST_MODEL: "openai:mock",
      ROOST_OPENAI_BASE_URL: mock.url,
      ROOST_EGRESS: `127.0.0.1:${echo.port},127.0.0.1:${other.port}`,
    },
    { log },
  );
  person = await server.signUp();
  ({ instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body);
  const instance = `/v1/instances/${instanceId}`;
  await person.ask("POST", `${instance}/secrets`, { key: "NOTES_TOKEN", value: SECRET });
  await person.ask("POST", `${instance}/skills`, { files: { "SKILL.md": skill(`127.0.0.1:${echo.port}`) } });
  // Its calls are made without asking anybody.
  const tools = { http_request: "always" };
  const { agentId } = (await person.ask("POST", `${instance}/agents`, { name: "Ada", tools })).body;
  agent = `${instance}/agents/${agentId}`;
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
  await Promise.all([echo.stop(true), other.stop(true)]);
});

/** Lets the model make this call, and returns what it was told. */
async function call(name: string, input: object): Promise<string> {
  const before = mock.requests.length;
  mock.script({ kind: "tools", calls: [{ name, arguments: input }] }, { kind: "text", tokens: ["Done."] });
  expect((await person.ask("POST", `${agent}/messages`, { message: "Please do." })).status).toBe(200);
  return ofStranger(mock.requests[before + 1]?.body.messages.at(-1).content);
}
/** What stands between the marks of untrusted text; the whole where there are none. */
const ofStranger = (told: string): string => /<(untrusted-\w+)>\n(.*)\n<\/\1>/s.exec(told)?.[2] ?? told;
const sent = () => seen.at(-1);

describe("an agent of a real host", () => {
  test("is offered both tools, and reads a page as Markdown", async () => {
    expect(await call("web_fetch", { url: at("/page#part") })).toBe(
      `URL: ${at("/page")}\nTitle: Notes\n\n# Notes\n\nAbout **birds**.`,
    );
    const offered = mock.requests[0]?.body.tools.map((tool: { function: { name: string } }) => tool.function.name);
    expect(offered).toEqual(expect.arrayContaining(["web_fetch", "http_request"]));
  });

  test("is told where a page really is, its status, and what cannot be shown", async () => {
    expect(await call("web_fetch", { url: at(`/redirect?to=${encodeURIComponent("/nowhere")}`) })).toBe(
      `URL: ${at("/nowhere")}\nStatus: 404 Not Found\n\nnothing here`,
    );
    expect(await call("web_fetch", { url: at("/image") })).toContain(
      "[300 bytes of image/png: not text, so not shown]",
    );
    expect(await call("web_fetch", { url: at("/page?t={{secret:NOTES_TOKEN}}") })).toContain("use http_request");
  });

  test("sends a secret that it never sees, and that no event, message or log has", async () => {
    const told = await call("http_request", {
      method: "POST",
      url: at("/echo?q={{secret:NOTES_TOKEN}}"),
      body: { token: "{{secret:NOTES_TOKEN}}" },
    });
    expect(sent()?.method).toBe("POST");
    expect(sent()?.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(sent()?.body ?? "")).toEqual({ token: SECRET });
    expect(new URL(sent()?.url ?? "").searchParams.get("q")).toBe(SECRET);
    expect(told).toStartWith("Status: 200 OK\n");
    expect(told).toContain("x-echo: [secret NOTES_TOKEN]");

    const streamed = await person.fetch("GET", `${agent}/events?after=0`);
    const events = streamed.body?.getReader();
    let text = "";
    while (!text.includes("run.completed", text.indexOf("http_request"))) {
      text += new TextDecoder().decode((await events?.read())?.value);
    }
    await events?.cancel();
    const messages = await (await person.fetch("GET", `${agent}/messages`)).text();
    const rows = server.foundation.store.sqlite.query("SELECT * FROM events").all();
    expect(text).toContain("[secret NOTES_TOKEN]");
    for (const kept of [told, text, messages, JSON.stringify(rows), logged.join("")]) {
      for (const form of FORMS) expect(kept).not.toContain(form);
    }
  });

  test("fills forms and headers, and leaves other text alone", async () => {
    await call("http_request", {
      method: "PUT",
      url: at("/echo?a=%7B%7B&b={x}"),
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      body: "t={{secret:NOTES_TOKEN}}&u={{other}}",
    });
    expect(new URLSearchParams(sent()?.body).get("t")).toBe(SECRET);
    expect(sent()?.body).toEndWith("&u={{other}}");
    expect(new URL(sent()?.url ?? "").search).toBe("?a=%7B%7B&b={x}");
    // A header carries ASCII only.
    const before = seen.length;
    expect(
      await call("http_request", { method: "GET", url: at("/echo"), headers: { "X-Key": "{{secret:NOTES_TOKEN}}" } }),
    ).toContain("a header cannot carry it");
    expect(seen.length).toBe(before);
  });

  test.each([
    [{ method: "GET", url: "https://example.org/" }, "no installed skill declares it"],
    [{ method: "GET", url: "http://169.254.169.254/latest/meta-data" }, "no installed skill declares it"],
    [{ method: "GET", url: elsewhere("/?q={{secret:NOTES_TOKEN}}") }, "may not be sent to 127.0.0.1"],
    [{ method: "GET", url: at("/echo?q={{secret:NO_SUCH}}") }, "may not be sent to 127.0.0.1"],
    [{ method: "GET", url: at("/{{secret:NOTES_TOKEN}}") }, "nowhere else"],
    [{ method: "GET", url: at("/echo"), headers: { "{{secret:NOTES_TOKEN}}": "x" } }, "nowhere else"],
    [
      { method: "GET", url: at("/echo"), headers: { "User-Agent": "{{secret:NOTES_TOKEN}}" } },
      "where a redirect leads",
    ],
    [{ method: "GET", url: at("/echo"), headers: { "X-A": "b\r\nX-Evil: 1" } }, "line break"],
    [{ method: "GET", url: at("/echo"), headers: { Host: "example.org" } }, "set by the host"],
    [{ method: "GET", url: at("/echo"), body: "text" }, "has no body"],
    [{ method: "TRACE", url: at("/echo") }, "method"],
    [{ method: "GET", url: "not a URL" }, "this is not a URL"],
  ])("is told why a request is not sent: %j", async (input, reason) => {
    const before = seen.length;
    expect(await call("http_request", input)).toContain(reason);
    expect(seen.length).toBe(before);
  });

  test("no part of a secret is left where an answer that repeats it is cut", async () => {
    const told = await call("http_request", { method: "GET", url: at("/again") });
    const { data } = (await person.ask("GET", `${agent}/files?limit=100`)).body;
    const { name } = data.find((file: { name: string }) => file.name.startsWith("tool-output/"));
    const kept = (await person.ask("GET", `${agent}/files/${name}`)).body;
    expect(kept).toContain("[secret NOTES_TOKEN]");
    expect(kept).toContain("cut here: the first of");
    for (const text of [told, kept]) expect(text).not.toContain(SECRET.slice(0, 4));
  });

  test("may be sent to another named host by a redirect, which gets no credentials", async () => {
    const to = encodeURIComponent(elsewhere("/"));
    const headers = { Authorization: "Bearer of-the-model", Cookie: "a=b", "X-Api-Key": "c" };
    const told = await call("http_request", { method: "GET", url: at(`/redirect?to=${to}`), headers });
    expect(told).toContain(`URL: ${elsewhere("/")}`);
    for (const value of Object.values(headers)) expect(told).not.toContain(`"${value}"`);
    const away = encodeURIComponent("https://example.org/");
    expect(await call("http_request", { method: "GET", url: at(`/redirect?to=${away}`) })).toContain(
      "no installed skill",
    );
  });

  test("leaves its refusals and its secrets' uses in the audit log, and counts in the metrics", async () => {
    const rows = server.foundation.audit.read(0, 1_000);
    expect(rows.filter(({ action }) => action === "egress.refuse")).toContainEqual(
      expect.objectContaining({
        actor: "host",
        subject: instanceId,
        detail: '{"host":"169.254.169.254","fault":"policy"}',
      }),
    );
    expect(rows.filter(({ action }) => action === "secret.use").length).toBeGreaterThan(1);
    const metrics = (await server.ask("GET", "/metrics")).body;
    expect(metrics).toMatch(/roost_egress_requests_total\{outcome="answered"\} [1-9]/);
    expect(metrics).toMatch(/roost_egress_requests_total\{outcome="policy"\} [1-9]/);
    expect(metrics).toContain("roost_egress_connections 0");
  });

  test("cannot fill the audit log with refusals", async () => {
    const refused = () =>
      server.foundation.audit.read(0, 1_000).filter(({ action }) => action === "egress.refuse").length;
    for (let more = 0; more < 15; more++) {
      const calls = ["a", "b"].map((name) => ({
        name: "web_fetch",
        arguments: { url: `http://${name}${more}.example/` },
      }));
      mock.script({ kind: "tools", calls }, { kind: "text", tokens: ["Done."] });
      await person.ask("POST", `${agent}/messages`, { message: "Please do." });
    }
    expect(refused()).toBe(20);
  });
});
