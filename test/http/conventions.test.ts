import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { STATUS_OF_CODE } from "../../src/lib/app-error.ts";
import { type Answer, type Ask, type Person, startTestServer, type TestServer } from "../support/test-server.ts";
import { rawRequest } from "./raw-request.ts";

const MIB = 1024 * 1024;
const UNKNOWN = `inst_${"0".repeat(32)}`;
let server: TestServer;
let owner: Person;
let instanceId: string;
let agents: string;
let agent: string;
let reader: string;

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.signUp();
  ({ instanceId } = (await owner.ask("POST", "/v1/instances", { name: "one" })).body);
  agents = `/v1/instances/${instanceId}/agents`;
  const { body } = await owner.ask("POST", agents, { name: "Ada", slug: "ada", files: { "a.md": "a" } });
  agent = `${agents}/${body.agentId}`;
  reader = (await owner.ask("POST", "/v1/auth/keys", { scopes: ["read"] })).body.key;
});
afterAll(() => server.stop());

/** Every error text that a test of this file has seen. */
const messages: string[] = [];

function expectEnvelope({ status, headers, body }: Answer, expected: number, code?: string): void {
  expect(status).toBe(expected);
  expect(headers.get("content-type")).toBe("application/json");
  expect(Object.keys(body.error).sort()).toEqual(["code", "message", "requestId", "status"]);
  expect(body.error.status).toBe(expected);
  expect(body.error.requestId).toBe(headers.get("x-request-id"));
  expect(Object.keys(STATUS_OF_CODE)).toContain(body.error.code);
  if (code !== undefined) expect(body.error.code).toBe(code);
  messages.push(body.error.message);
}

afterEach(() => {
  const leaks =
    /\bat .+:\d+|\/(src|tmp|home|root|usr|node_modules|proc)\/|sqlite|drizzle|elysia|zod|\bbun\b|SELECT |INSERT |constraint|undefined|\[object|TypeError|ENOENT/i;
  expect(messages.filter((message) => leaks.test(message))).toEqual([]);
  expect(messages.filter((message) => message.length > 500)).toEqual([]);
});

const post = (path: string, body: string | Uint8Array | undefined, headers: Record<string, string> = {}) =>
  server.ask("POST", path, {
    token: owner.token,
    ...(body === undefined ? {} : { body }),
    headers: { "Content-Type": "application/json", ...headers },
  });

describe("the error envelope is on", () => {
  test.each([
    ["GET", "/v1/nowhere"],
    ["POST", "/v1/nowhere/"],
    ["GET", "/v2/instances"],
    ["GET", "/nowhere"],
    ["GET", "/console/nowhere.js"],
    ["GET", "/v1/../etc/passwd"],
    ["GET", "/v1/%2e%2e%2fetc"],
    ["DELETE", "/v1"],
  ])("an unknown path: %s %s", async (method, path) => {
    expectEnvelope(await server.ask(method, path), 404, "not_found");
  });

  test.each([
    ["DELETE", "/v1/auth/me", "GET, PATCH, HEAD"],
    ["PUT", "/v1/instances", "POST, GET, HEAD"],
    ["OPTIONS", "/v1/instances", "POST, GET, HEAD"],
    ["GET", "/v1/auth/send-code", "POST"],
    ["POST", "/healthz", "GET, HEAD"],
    ["POST", "/", "GET, HEAD"],
  ])("a wrong method, with those allowed: %s %s", async (method, path, allow) => {
    const answer = await server.ask(method, path);
    expectEnvelope(answer, 405, "method_not_allowed");
    expect(answer.headers.get("allow")).toBe(allow);
  });

  test.each([
    ["malformed JSON", '{"name": '],
    ["no JSON", "name=one"],
    ["two values", '{"name":"a"}{}'],
    ["a list", "[]"],
    ["text", '"name"'],
    ["null", "null"],
    ["a number", "7"],
    ["JSON that is too deep to read", "[".repeat(500_000)],
    ["JSON that is nested too deep", `{"name":"one","x":${"[".repeat(200)}${"]".repeat(200)}}`],
    ["bytes that are no UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["half a character", '{"name":"\\ud800"}'],
  ])("a body of %s", async (_, body) => {
    expectEnvelope(await post("/v1/instances", body), 400, "invalid_request");
  });

  test("a parameter that is repeated, unless nobody asks for it", async () => {
    for (const name of ["limit", "after"]) {
      const answer = await owner.ask("GET", `/v1/instances?${name}=1&${name}=2`);
      expectEnvelope(answer, 400, "invalid_request");
      expect(answer.body.error.message).toStartWith(`${name}: expected `);
    }
    expect((await owner.ask("GET", "/v1/instances?other=1&other=2")).status).toBe(200);
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/form-data", ""])(
    "a body with the Content-Type %p",
    async (type) => {
      const answer = await post("/v1/instances", '{"name":"one"}', { "Content-Type": type });
      expectEnvelope(answer, 400, "invalid_request");
      expect(answer.body.error.message).toBe("Content-Type: expected application/json");
    },
  );

  test("a body that is packed, which the answer says", async () => {
    const packed = { "Content-Type": "application/json", "Content-Encoding": "gzip" };
    const answer = await post("/v1/instances", Bun.gzipSync('{"name":"one"}'), packed);
    expectEnvelope(answer, 400, "invalid_request");
    expect(answer.body.error.message).toBe("Content-Encoding: expected none: a body is not unpacked here");
    const plain = { ...packed, "Content-Encoding": "identity" };
    expect((await post("/v1/instances", '{"name":"two"}', plain)).status).toBe(201);
  });

  test.each(["application/json;charset=UTF-8", "APPLICATION/JSON", "application/json ; x=y"])(
    "no body with the Content-Type %p",
    async (type) => {
      expect((await post("/v1/instances", '{"name":"one"}', { "Content-Type": type })).status).toBe(201);
    },
  );

  test("a path that cannot be decoded", async () => {
    for (const part of ["%", "%ff", "%zz"]) {
      expectEnvelope(await owner.ask("GET", `/v1/instances/${part}`), 404, "not_found");
      expectEnvelope(await server.ask("GET", `/v1/instances/${part}`), 401, "unauthorized");
    }
  });

  test("what a page refuses: /metrics from elsewhere", async () => {
    const behind = await startTestServer({ ROOST_TRUST_PROXY: "true", ROOST_METRICS_TOKEN: "hush" });
    const headers = { "X-Forwarded-For": "203.0.113.9" };
    const refused = await behind.ask("GET", "/metrics", { headers });
    expectEnvelope(refused, 401, "unauthorized");
    expect(refused.headers.has("www-authenticate")).toBe(true);
    expect((await behind.ask("GET", "/metrics", { headers, token: "hush" })).status).toBe(200);
    await behind.stop();
  });
});

test("a metric that has no value shows none", async () => {
  const { body } = await server.ask("GET", "/metrics");
  for (const name of ["roost_backup_newest_timestamp_seconds", "roost_backup_overdue"]) {
    expect(body).toContain(`# TYPE ${name} gauge`);
    expect(body).not.toMatch(new RegExp(`^${name}\\b`, "m"));
  }
  expect(body).toMatch(/^roost_instances_running \d+$/m);
});

describe("a body over the limit", () => {
  const head = (credential: string) =>
    `POST /v1/instances HTTP/1.1\r\nHost: ${new URL(server.url).host}\r\n${credential}Content-Type: application/json\r\n`;
  const signed = () => head(`Authorization: Bearer ${owner.token}\r\n`);
  const chunk = `10000\r\n${" ".repeat(0x10000)}\r\n`;

  test.each([MIB + 1, 100 * MIB, 10_000 * MIB])("is refused by its length alone: %d bytes", async (length) => {
    const { status, body } = await rawRequest(server.url, `${signed()}Content-Length: ${length}\r\n\r\n`);
    expect(status).toBe(413);
    expect(JSON.parse(body).error.code).toBe("payload_too_large");
  });

  test("is refused while it arrives in chunks, before it ends", async () => {
    const chunks = Array.from({ length: 17 }, () => chunk);
    const answer = await rawRequest(server.url, `${signed()}Transfer-Encoding: chunked\r\n\r\n`, ...chunks);
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body).error).toMatchObject({ code: "payload_too_large", status: 413 });
  });

  test("at the limit is read, in chunks or not", async () => {
    const body = `{"name":"one","more":"${"x".repeat(MIB - 24)}"}`;
    expect(body.length).toBe(MIB);
    expect((await post("/v1/instances", body)).status).toBe(201);
    const end = `100000\r\n${body}\r\n0\r\n\r\n`;
    const answer = await rawRequest(server.url, `${signed()}Transfer-Encoding: chunked\r\n\r\n`, end);
    expect(answer.status).toBe(201);
  });

  test.each(["Content-Length: 10485760", "Transfer-Encoding: chunked"])(
    "without a credential is not read: 401 first (%s)",
    async (how) => {
      const { status, headers, body } = await rawRequest(server.url, `${head("")}${how}\r\n\r\n`, chunk);
      expect(status).toBe(401);
      expect(headers.get("www-authenticate")).toStartWith("Bearer");
      expect(JSON.parse(body).error.code).toBe("unauthorized");
    },
  );
});

describe("a request id", () => {
  test.each(["a", "A.b_c-9", "x".repeat(128)])("from the caller is returned: %s", async (id) => {
    const headers = { "X-Request-Id": id };
    expect((await owner.ask("GET", "/v1/auth/me", undefined, headers)).headers.get("x-request-id")).toBe(id);
    const refused = await server.ask("GET", "/v1/auth/me", { headers });
    expect([refused.headers.get("x-request-id"), refused.body.error.requestId]).toEqual([id, id]);
  });

  test.each(["", "x".repeat(129), "a b", "a/b", "caf\u00e9"])("that is malformed is replaced: %p", async (id) => {
    const { headers } = await owner.ask("GET", "/v1/auth/me", undefined, { "X-Request-Id": id });
    expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test.each([
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/",
    "/v1/skills",
    "/nowhere",
    `/v1/instances/${UNKNOWN}`,
  ])("is on every response: %s", async (path) => {
    const { headers } = await server.ask("GET", path, { headers: { "X-Request-Id": "mine" } });
    expect(headers.get("x-request-id")).toBe("mine");
  });
});

describe("an answer", () => {
  test("describes the same error by RFC 9457 if the client asks for that", async () => {
    const headers = { Accept: "application/problem+json, application/json" };
    for (const [method, path, status] of [
      ["GET", "/v1/nowhere", 404],
      ["DELETE", "/v1/auth/me", 405],
      ["GET", "/v1/auth/me", 401],
    ] as const) {
      const { status: got, headers: sent, body } = await server.ask(method, path, { headers });
      expect(got).toBe(status);
      expect(sent.get("content-type")).toBe("application/problem+json");
      expect(body).toMatchObject({ type: `urn:roost:error:${body.code}`, status, requestId: sent.get("x-request-id") });
      expect(Object.keys(body).sort()).toEqual(["code", "detail", "requestId", "status", "title", "type"]);
    }
    const poor = await server.signUp(undefined, "0.00");
    const { body } = await poor.ask("POST", "/v1/instances", { name: "one" }, headers);
    expect(body).toMatchObject({ status: 402, code: "payment_required", x402: { currency: "USDC" } });
  });

  test("to a caller is never cached; neither are files and errors", async () => {
    for (const path of [
      "/v1/auth/me",
      "/v1/instances",
      agent,
      `${agent}/files`,
      `${agent}/files/a.md`,
      "/v1/nowhere",
    ]) {
      expect((await owner.ask("GET", path)).headers.get("cache-control")).toBe("no-store");
    }
  });

  test("sets no cookie and allows no other origin", async () => {
    const { headers } = await owner.ask("GET", "/v1/auth/me", undefined, { Origin: "https://evil.example" });
    expect(headers.has("set-cookie")).toBe(false);
    expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test("to HEAD is the one to GET without its body", async () => {
    for (const path of [
      "/v1/auth/me",
      "/v1/instances",
      agent,
      `${agent}/files/a.md`,
      `/v1/instances/${UNKNOWN}`,
      "/",
    ]) {
      const [got, head] = [await owner.ask("GET", path), await owner.ask("HEAD", path)];
      expect(head.status).toBe(got.status);
      expect(head.body).toBe("");
      expect(head.headers.get("content-type")).toBe(got.headers.get("content-type"));
    }
    expect((await server.ask("HEAD", "/v1/auth/me")).status).toBe(401);
  });

  test("to HEAD claims no length where GET sends a stream, or where nothing has changed", async () => {
    const lengthOf = async (path: string, headers: Record<string, string> = {}) => {
      const answer = await owner.ask("HEAD", `${agent}${path}`, undefined, headers);
      return [answer.status, answer.headers.get("content-length")];
    };
    expect(await lengthOf("/events")).toEqual([200, null]);
    expect(await lengthOf("/bundle")).toEqual([200, null]);
    expect(await lengthOf("/files/a.md", { "If-None-Match": "*" })).toEqual([304, null]);
    expect(await lengthOf("/files/a.md")).toEqual([200, "1"]);
  });
});

describe("a body", () => {
  test("that is absent counts as an empty object if every field is optional", async () => {
    expect((await owner.ask("POST", "/v1/auth/keys")).status).toBe(201);
    expect((await owner.ask("POST", `/v1/instances/${instanceId}/start`)).status).toBe(200);
    expect((await post("/v1/auth/keys", "")).status).toBe(201);
  });

  test("that is absent, with a required field, is refused with the field's name", async () => {
    const answer = await owner.ask("POST", "/v1/instances");
    expectEnvelope(answer, 400, "invalid_request");
    expect(answer.body.error.message).toBe("name: expected 1 to 100 characters");
  });

  test("may have unknown fields", async () => {
    const { status, body } = await owner.ask("POST", "/v1/instances", {
      name: "one",
      status: "stopped",
      __proto__x: 1,
    });
    expect([status, body.status]).toEqual([201, "running"]);
    expect((await owner.ask("PATCH", agent, { name: "Ada", agentId: "agt_x", nonsense: {} })).status).toBe(200);
  });

  test("of a PATCH without a known field is refused", async () => {
    const daily = { name: "Daily", message: "Hello", cron: "0 8 * * *" };
    const { scheduleId } = (await owner.ask("POST", `${agent}/schedules`, daily)).body;
    for (const path of ["/v1/auth/me", `/v1/instances/${instanceId}`, agent, `${agent}/schedules/${scheduleId}`]) {
      for (const body of [{}, { nonsense: 1 }, undefined]) expectEnvelope(await owner.ask("PATCH", path, body), 400);
    }
  });

  test("is checked also if the route has no fields", async () => {
    for (const path of [
      `/v1/instances/${instanceId}/stop`,
      `/v1/instances/${instanceId}/start`,
      "/v1/auth/revoke-tokens",
      "/v1/auth/sign-out",
    ]) {
      expectEnvelope(await post(path, "{"), 400, "invalid_request");
      expectEnvelope(await post(path, "[]"), 400, "invalid_request");
      expectEnvelope(await post(path, `{"x":"${"x".repeat(MIB)}"}`), 413, "payload_too_large");
    }
  });

  test("that is refused is reported by its field, whatever the field's name", async () => {
    const long = "f".repeat(10_000);
    const answer = await owner.ask("POST", agents, { name: "x", files: { [long]: 7 } });
    expectEnvelope(answer, 400);
    expect(answer.body.error.message).toMatch(/^files\.f+: expected text$/);
    const list = await owner.ask("POST", "/v1/auth/keys", { scopes: ["read", "fly"] });
    expect(list.body.error.message).toBe("scopes.1: expected a list of at least one of read, write, chat, approve");
  });
});

test("a malformed id is 404 like an unknown one", async () => {
  const texts = new Set<string>();
  for (const id of [
    UNKNOWN,
    "x",
    "inst_",
    `agt_${"0".repeat(32)}`,
    UNKNOWN.toUpperCase(),
    `${UNKNOWN}0`,
    "inst_%00",
    "%20",
    "'--",
  ]) {
    const answer = await owner.ask("GET", `/v1/instances/${id}`);
    expectEnvelope(answer, 404, "not_found");
    texts.add(answer.body.error.message);
    expectEnvelope(await owner.ask("DELETE", `/v1/auth/keys/${id}`), 404);
    expectEnvelope(await owner.ask("GET", `${agents}/${id}`), 404);
    expectEnvelope(await owner.ask("GET", `${agent}/runs/${id}`), 404);
  }
  expect([...texts]).toEqual(["instance not found"]);
});

describe("of two errors, the first in the contract's order is reported:", () => {
  const name = (what: unknown) => ({ name: what });
  const big = "x".repeat(MIB + 1);
  const nowhere = `/v1/instances/${UNKNOWN}`;
  type Case = [string, () => [method: string, path: string, ask: Ask], number];
  const cases: Case[] = [
    ["unknown route before credential", () => ["GET", "/v1/nowhere", {}], 404],
    ["method before credential", () => ["DELETE", "/v1/auth/me", {}], 405],
    ["method before resource", () => ["PUT", nowhere, { token: owner.token }], 405],
    ["credential before resource", () => ["GET", nowhere, {}], 401],
    ["credential before body", () => ["POST", "/v1/instances", { body: "{" }], 401],
    ["credential before size", () => ["POST", "/v1/instances", { body: big }], 401],
    ["scope before resource", () => ["POST", `${nowhere}/stop`, { key: reader }], 403],
    ["scope before body", () => ["POST", "/v1/instances", { key: reader, body: "{" }], 403],
    ["scope before size", () => ["POST", "/v1/instances", { key: reader, body: big }], 403],
    [
      "scope before idempotency",
      () => ["POST", "/v1/instances", { key: reader, headers: { "Idempotency-Key": " " } }],
      403,
    ],
    ["resource before body", () => ["POST", `${nowhere}/agents`, { token: owner.token, body: "{" }], 404],
    ["resource before size", () => ["POST", `${nowhere}/agents`, { token: owner.token, body: big }], 404],
    [
      "resource before size of a file",
      () => ["PUT", `${agents}/agt_x/files/a`, { token: owner.token, body: big }],
      404,
    ],
    ["resource before body of a stop", () => ["POST", `${nowhere}/stop`, { token: owner.token, body: "{" }], 404],
    ["resource before query", () => ["GET", `${nowhere}/agents?limit=0`, { token: owner.token }], 404],
    [
      "foreign instance before a time that is past",
      () => [
        "POST",
        "/v1/auth/keys",
        { token: owner.token, body: { instanceId: UNKNOWN, expiresAt: "2001-01-01T00:00:00Z" } },
      ],
      404,
    ],
    ["body before conflict", () => ["POST", agents, { token: owner.token, body: { name: "", slug: "ada" } }], 400],
    [
      "file name before conflict",
      () => ["POST", agents, { token: owner.token, body: { name: "x", slug: "ada", files: { "../a": "" } } }],
      400,
    ],
    [
      "file clash before conflict",
      () => ["POST", agents, { token: owner.token, body: { name: "x", slug: "ada", files: { a: "", A: "" } } }],
      400,
    ],
    [
      "file name before precondition",
      () => ["PUT", `${agent}/files/..%2Fa`, { token: owner.token, body: "x", headers: { "If-Match": '"x"' } }],
      400,
    ],
    [
      "file size before precondition",
      () => [
        "PUT",
        `${agent}/files/a.md`,
        { token: owner.token, body: "x".repeat(256 * 1024 + 1), headers: { "If-Match": '"x"' } },
      ],
      400,
    ],
    [
      "file clash before precondition",
      () => ["PUT", `${agent}/files/A.md`, { token: owner.token, body: "x", headers: { "If-Match": '"x"' } }],
      400,
    ],
    [
      "size before precondition",
      () => ["PUT", `${agent}/files/a.md`, { token: owner.token, body: big, headers: { "If-Match": '"x"' } }],
      413,
    ],
    [
      "missing file before precondition",
      () => ["DELETE", `${agent}/files/none`, { token: owner.token, headers: { "If-Match": '"x"' } }],
      404,
    ],
    ["body before invite", () => ["POST", "/v1/auth/send-code", { body: { email: "nobody" } }], 400],
  ];
  test.each(cases)("%s", async (_, request, status) => {
    const [method, path, ask] = request();
    const json = typeof ask.body === "string" && method !== "PUT" ? { "Content-Type": "application/json" } : {};
    expectEnvelope(await server.ask(method, path, { ...ask, headers: { ...json, ...ask.headers } }), status);
  });

  test("suspension before resource and body", async () => {
    const person = await server.signUp();
    server.foundation.accounts.setSuspended(person.accountId, true);
    expectEnvelope(await person.ask("GET", nowhere), 403, "forbidden");
    expectEnvelope(await person.ask("POST", "/v1/instances", name("")), 403, "forbidden");
  });

  test("body before payment, resource before payment, size before payment", async () => {
    const poor = await server.signUp(undefined, "0.00");
    expectEnvelope(await poor.ask("POST", "/v1/instances", name("")), 400);
    expectEnvelope(await poor.ask("POST", "/v1/instances", name(big)), 413);
    expectEnvelope(await poor.ask("POST", `${nowhere}/start`), 404);
    expect((await poor.ask("POST", "/v1/instances", name("one"))).status).toBe(402);
  });

  test("body before a stopped instance, and a missing agent before it", async () => {
    await owner.ask("POST", `/v1/instances/${instanceId}/stop`);
    expectEnvelope(await owner.ask("POST", `${agent}/messages`, { message: " " }), 400);
    expectEnvelope(await owner.ask("POST", `${agents}/agt_x/messages`, { message: "hi" }), 404);
    const answer = await owner.ask("POST", `${agent}/messages`, { message: "hi" });
    expectEnvelope(answer, 503, "instance_not_ready");
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    await owner.ask("POST", `/v1/instances/${instanceId}/start`);
  });

  test("a replay before a resource that is gone by now", async () => {
    const key = { "Idempotency-Key": "gone" };
    const { body } = await owner.ask("POST", "/v1/instances", name("short-lived"));
    const path = `/v1/instances/${body.instanceId}/agents`;
    const first = await owner.ask("POST", path, name("Ada"), key);
    await owner.ask("DELETE", `/v1/instances/${body.instanceId}`);
    const again = await owner.ask("POST", path, name("Ada"), key);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expectEnvelope(await owner.ask("POST", path, name("Ada")), 404);
  });
});

describe("a page of another origin cannot reach a host on loopback by its own name:", () => {
  const ask = (host: string, url = server.url) =>
    rawRequest(url, `GET /v1/skills HTTP/1.1\r\nHost:${host === "" ? "" : ` ${host}`}\r\n\r\n`);

  test.each([
    "evil.example",
    "evil.example:7373",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "",
    "0.0.0.0",
    "[::]",
    "10.0.0.1",
  ])("Host %p is refused", async (host) => {
    const { status, headers, body } = await ask(host);
    expect(status).toBe(403);
    expect(JSON.parse(body).error).toMatchObject({
      code: "forbidden",
      status: 403,
      requestId: headers.get("x-request-id"),
    });
  });

  test.each(["localhost", "LOCALHOST:80", "127.0.0.1", "127.9.8.7:1", "[::1]:7373"])(
    "Host %p is answered",
    async (host) => {
      expect((await ask(host)).status).toBe(200);
    },
  );

  test("the host name of the public URL is answered too, and no other", async () => {
    const named = await startTestServer({ ROOST_PUBLIC_URL: "https://Roost.Example" });
    expect((await ask("roost.example", named.url)).status).toBe(200);
    expect((await ask("evil.example", named.url)).status).toBe(403);
    await named.stop();
  });
});
