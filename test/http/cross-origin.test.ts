import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { rawRequest } from "./raw-request.ts";

const APP = "https://app.example.com";
let server: TestServer;
let ada: Person;
beforeAll(async () => {
  server = await startTestServer({ ROOST_HOST: "0.0.0.0", ROOST_CORS_ORIGINS: `${APP}, http://localhost:5173` });
  ada = await server.signUp();
});
afterAll(() => server.stop());

const preflight = (origin: string, path = "/v1/instances", url = server.url) =>
  fetch(url + path, {
    method: "OPTIONS",
    headers: {
      Origin: origin,
      "Access-Control-Request-Method": "PATCH",
      "Access-Control-Request-Headers": "authorization,x-stainless-lang",
    },
  });

test.each([APP, "http://localhost:5173"])(
  "pages of %s, which is named, may call the API and read its answers",
  async (origin) => {
    const asked = await preflight(origin);
    expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([204, origin]);
    expect(asked.headers.get("access-control-allow-methods")).toContain("PATCH");
    expect(asked.headers.get("access-control-allow-headers")).toBe("authorization,x-stainless-lang");

    const { status, headers } = await ada.ask("GET", "/v1/auth/me", undefined, { Origin: origin });
    expect([status, headers.get("access-control-allow-origin"), headers.get("vary")]).toEqual([200, origin, "Origin"]);
    const shown = headers.get("access-control-expose-headers")?.split(", ");
    const payment = ["PAYMENT-REQUIRED", "PAYMENT-RESPONSE", "X-PAYMENT-RESPONSE"];
    expect(shown).toEqual(expect.arrayContaining(["Retry-After", "Last-Event-ID", "Preference-Applied", ...payment]));
    expect(headers.get("access-control-allow-credentials")).toBeNull();
  },
);

test("they can read refusals and streams too", async () => {
  for (const path of ["/v1/nothing", "/v1/instances?limit=0"]) {
    const { headers } = await ada.ask("GET", path, undefined, { Origin: APP });
    expect(headers.get("access-control-allow-origin")).toBe(APP);
  }
  const { instanceId } = (await ada.ask("POST", "/v1/instances", { name: "home" })).body;
  const { agentId } = (await ada.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Bo" })).body;
  const events = await ada.fetch("GET", `/v1/instances/${instanceId}/agents/${agentId}/events`, undefined, {
    Origin: APP,
  });
  expect(events.headers.get("access-control-allow-origin")).toBe(APP);
  await events.body?.cancel();
});

test("pages of other origins may not, and nothing but the API is opened", async () => {
  for (const origin of ["https://app.example.com.evil.example", "http://app.example.com", "null", `${APP}:8443`]) {
    expect((await preflight(origin)).headers.get("access-control-allow-origin")).toBeNull();
    const { headers } = await ada.ask("GET", "/v1/auth/me", undefined, { Origin: origin });
    expect(headers.get("access-control-allow-origin")).toBeNull();
  }
  for (const path of ["/", "/metrics", "/docs"]) {
    const { headers } = await fetch(server.url + path, { headers: { Origin: APP } });
    expect(headers.get("access-control-allow-origin")).toBeNull();
  }
});

test.each(["a b", "", "["])("a Host of %p is no fault of the host", async (host) => {
  const head = ["GET /v1/skills HTTP/1.1", `Host: ${host}`, `Origin: ${APP}`, "", ""].join("\r\n");
  const { status, headers } = await rawRequest(server.url, head);
  expect([status, headers.get("access-control-allow-origin")]).toEqual([200, APP]);
});

test("without the setting no origin is allowed", async () => {
  await using closed = { server: await startTestServer(), [Symbol.asyncDispose]: () => closed.server.stop() };
  const { status, headers } = await preflight(APP, "/v1/instances", closed.server.url);
  expect([status, headers.get("access-control-allow-origin")]).toEqual([405, null]);
});
