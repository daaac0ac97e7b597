import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pino } from "pino";
import { clientAddress } from "../../src/http/request.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { rawRequest } from "./raw-request.ts";

/** Sends a request to this host name, as a proxy or a page of another origin would. */
const under = (url: string, path: string, host: string, more = "") =>
  rawRequest(url, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`);

describe("without a token, /metrics", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ ROOST_PUBLIC_URL: "https://roost.example.org" });
  });
  afterAll(() => server.stop());

  test("answers requests from this machine", async () => {
    for (const host of ["127.0.0.1", "localhost:7373", "[::1]:7373"]) {
      expect((await under(server.url, "/metrics", host)).status).toBe(200);
    }
  });

  test.each([
    "X-Forwarded-For: 203.0.113.9",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Whatever: x",
    "X-Real-IP: 127.0.0.1",
    "Forwarded: for=127.0.0.1",
    "Via: 1.1 proxy",
  ])("refuses what a proxy on this machine forwards: %s", async (header) => {
    expect((await under(server.url, "/metrics", "127.0.0.1", `${header}\r\n`)).status).toBe(401);
  });

  test("refuses requests to the public host name, as from a proxy that adds no header", async () => {
    expect((await under(server.url, "/metrics", "roost.example.org")).status).toBe(401);
    expect((await under(server.url, "/healthz", "roost.example.org")).status).toBe(200);
  });
});

test("with a token, /metrics answers only to it, also through a proxy", async () => {
  const server = await startTestServer({ ROOST_METRICS_TOKEN: "hush", ROOST_TRUST_PROXY: "true" });
  const headers = { "X-Forwarded-For": "203.0.113.9" };
  expect((await server.ask("GET", "/metrics")).status).toBe(401);
  expect((await server.ask("GET", "/metrics", { token: "husk" })).status).toBe(401);
  expect((await server.ask("GET", "/metrics", { token: "hush" })).status).toBe(200);
  expect((await server.ask("GET", "/metrics", { token: "hush", headers })).status).toBe(200);
  await server.stop();
});

test.each(["false", "true"])("on loopback a foreign host name is refused, ROOST_TRUST_PROXY=%s", async (trust) => {
  const server = await startTestServer({ ROOST_TRUST_PROXY: trust });
  const rebound = await under(server.url, "/healthz", "evil.example.org", "X-Forwarded-For: 203.0.113.9\r\n");
  expect(rebound.status).toBe(403);
  expect(JSON.parse(rebound.body).error.message).toContain("ROOST_PUBLIC_URL");
  await server.stop();

  const named = await startTestServer({ ROOST_TRUST_PROXY: trust, ROOST_PUBLIC_URL: "https://Roost.example.org" });
  expect((await under(named.url, "/healthz", "roost.example.org")).status).toBe(200);
  expect((await under(named.url, "/healthz", "evil.example.org")).status).toBe(403);
  await named.stop();
});

async function warningsOf(settings: Record<string, string>, ask: (server: TestServer) => Promise<unknown>) {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const server = await startTestServer(settings, { log });
  await ask(server);
  await server.stop();
  return lines;
}

test("an untrusted proxy on this machine is logged once, with the setting that fixes it", async () => {
  const twice = async (server: TestServer) => {
    for (const _ of [1, 2]) await server.ask("GET", "/healthz", { headers: { "X-Forwarded-For": "203.0.113.9" } });
  };
  expect(await warningsOf({}, twice)).toEqual([expect.stringContaining("ROOST_TRUST_PROXY=true")]);
  expect(await warningsOf({ ROOST_TRUST_PROXY: "true" }, twice)).toEqual([]);
  expect(await warningsOf({}, (server) => server.ask("GET", "/healthz"))).toEqual([]);
});

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["6.6.6.6, 203.0.113.10", "203.0.113.10"],
  ["203.0.113.11:4711", "203.0.113.11"],
  ["[2001:db8::1]:4711", "2001:db8::1"],
  ["203.0.113.9, junk'; --", "127.0.0.1"],
  ["203.0.113.9,", "127.0.0.1"],
  ["", "127.0.0.1"],
])(
  "behind a trusted proxy the last address counts, and an invalid one as the proxy's own: %p",
  (forwarded, address) => {
    const request = new Request("http://localhost/", { headers: { "X-Forwarded-For": forwarded } });
    expect(clientAddress(request, "127.0.0.1", true)).toBe(address);
    expect(clientAddress(request, "127.0.0.1", false)).toBe("127.0.0.1");
  },
);
