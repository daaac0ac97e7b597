import { afterAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { createHash } from "node:crypto";
import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import { kindOf } from "../../src/egress/address.ts";
import { createEgress, type EgressParts, type EgressRequest, type Refusal } from "../../src/egress/egress.ts";
import { createEgressPolicy, type EgressSetting } from "../../src/egress/policy.ts";
import { EgressError, type EgressFault } from "../../src/egress/refusal.ts";
import type { Message } from "../../src/egress/request.ts";
import { startHostileWeb } from "./hostile-web.ts";

/** Counts as public in these tests; all other loopback addresses are what they are. */
const PUBLIC = "127.0.0.2";
const web = startHostileWeb({ hostname: PUBLIC });
const inside = startHostileWeb();
afterAll(() => {
  web.stop();
  inside.stop();
});

let names: Record<string, string[] | (() => string[])> = {};
let asked: string[] = [];
let refusals: Refusal[] = [];
/** Connections to the server that is not public, in one test. */
let insideBefore = 0;
const insideConnections = () => inside.connections - insideBefore;
beforeEach(() => {
  insideBefore = inside.connections;
  names = { "public.test": [PUBLIC], "other.test": [PUBLIC], "inside.test": ["127.0.0.1"] };
  asked = [];
  refusals = [];
});

const open = (setting: EgressSetting = "public", parts: Partial<EgressParts> = {}) =>
  createEgress({
    policy: createEgressPolicy(setting),
    onRefused: (refusal) => void refusals.push(refusal),
    async resolve(name) {
      asked.push(name);
      const found = names[name];
      if (found === undefined) throw new Error("NXDOMAIN");
      return typeof found === "function" ? found() : found;
    },
    kindOf: (address) => (address === PUBLIC ? "public" : kindOf(address)),
    ...parts,
  });
const url = (path: string, host = "public.test") => `http://${host}:${web.port}${path}`;
const request = (to: string, parts: Partial<EgressRequest> = {}): EgressRequest => ({
  url: to,
  accountId: "acc_a",
  instanceId: "inst_a",
  runId: "run_a",
  signal: new AbortController().signal,
  ...parts,
});
const message = (parts: Partial<Message>): { message: Message } => ({
  message: { method: "GET", headers: {}, body: null, ...parts },
});
const get = (path: string, parts: Partial<EgressRequest> = {}, egress = open()) =>
  egress.send(request(url(path), parts));

const quickBrotli = (bytes: Buffer): Buffer =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/** The way in which a request fails. */
async function failure(sent: Promise<unknown>): Promise<EgressError> {
  const error = await sent.then(
    () => expect.unreachable(),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof EgressError)) throw error;
  return error;
}
const faultOf = async (sent: Promise<unknown>): Promise<EgressFault> => (await failure(sent)).fault;

describe("a server's answer", () => {
  test.each([
    ["/ok", "ok"],
    ["/chunked", "abcde"],
    ["/until-close", "all of it"],
    ["/gzip", "zipped"],
    ["/deflate", "zipped"],
    ["/br", "zipped"],
    ["/no-content", ""],
  ])("%s is read whole and decoded", async (path, body) => {
    expect((await get(path)).body.toString()).toBe(body);
  });

  test("has its status, headers and final URL", async () => {
    const answer = await get(`/to?${encodeURIComponent("/nothing#here")}`);
    expect(answer).toMatchObject({ status: 404, url: url("/nothing") });
    expect((await get("/ok")).headers).toContainEqual(["set-cookie", "a=b"]);
  });

  test.each([
    ["identity", Buffer.from],
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", quickBrotli],
  ] as const)("of four megabytes as %s is read whole", async (encoding, encode) => {
    // Half of it hardly compresses.
    const noise = Buffer.concat(Array.from({ length: 2 ** 15 }, (_, at) => sha256(`${at}`)));
    const content = Buffer.concat([noise, Buffer.alloc(2 ** 20, "a\n"), noise, Buffer.alloc(2 ** 20, "b\n")]);
    const bytes = encode(content);
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: ${encoding}\r\nContent-Length: ${bytes.length}\r\n\r\n`;
    const server = startHostileWeb({
      hostname: PUBLIC,
      answers: { "/four": () => Buffer.concat([Buffer.from(head), bytes]) },
    });
    const { body } = await open().send(request(`http://public.test:${server.port}/four`));
    expect(body.equals(content)).toBe(true);
    server.stop();
  });

  test("to HEAD has no body", async () => {
    expect((await get("/ok", message({ method: "HEAD" }))).body.length).toBe(0);
  });

  test.each([
    ["/bomb-gzip", "size"],
    ["/bomb-br", "size"],
    ["/endless", "size"],
    ["/huge-header", "size"],
    ["/many-headers", "size"],
    ["/endless-interim", "size"],
    ["/bomb-twice", "protocol"],
    ["/zstd", "protocol"],
    ["/gzip-broken", "protocol"],
    ["/gzip-cut", "protocol"],
    ["/large", "protocol"],
    ["/short", "protocol"],
    ["/two-framings", "protocol"],
    ["/two-lengths", "protocol"],
    ["/bad-chunk", "protocol"],
    ["/small-chunks", "protocol"],
    ["/folded-header", "protocol"],
    ["/switching", "protocol"],
    ["/not-http", "protocol"],
  ] as const)("%s fails as %s, and the connection is closed", async (path, fault) => {
    expect(await faultOf(get(path))).toBe(fault);
    await web.closed(web.connections);
  });

  test("many chunks are read if they carry something", async () => {
    expect((await get("/fair-chunks")).body).toHaveLength(192_000);
  });

  test.each(["/hang", "/slow-head", "/slow-body"])("%s ends at the deadline", async (path) => {
    expect(await faultOf(get(path, {}, open("public", { deadlineMs: 50 })))).toBe("deadline");
    await web.closed(web.connections);
  });
});

describe("a name", () => {
  test("is resolved once, and the connection goes to the address that was judged", async () => {
    let answers = 0;
    names["rebinding.test"] = () => (answers++ === 0 ? [PUBLIC] : ["127.0.0.1"]);
    const egress = open();
    const rebinding = () => egress.send(request(`http://rebinding.test:${web.port}/ok`));
    expect((await rebinding()).body.toString()).toBe("ok");
    expect(asked).toEqual(["rebinding.test"]);
    expect(await faultOf(rebinding())).toBe("address");
    expect(insideConnections()).toBe(0);
  });

  const hostile = [
    ["127.0.0.1"],
    ["10.0.0.1"],
    ["169.254.169.254"],
    ["::1"],
    ["::ffff:127.0.0.1"],
    ["64:ff9b::7f00:1"],
    ["2002:7f00:1::"],
    [PUBLIC, "127.0.0.1"],
  ];
  test.each(hostile.map((addresses) => ({ addresses })))(
    "with such addresses is refused: %j",
    async ({ addresses }) => {
      names["hostile.test"] = addresses;
      expect(await faultOf(open().send(request(`http://hostile.test:${inside.port}/ok`)))).toBe("address");
      expect(insideConnections()).toBe(0);
    },
  );

  test("that does not exist, or has no address, is told apart from one that is refused", async () => {
    names["empty.test"] = [];
    for (const name of ["nowhere.test", "empty.test"])
      expect(await faultOf(open().send(request(`http://${name}/`)))).toBe("dns");
    expect(refusals).toEqual([]);
  });

  test("whose resolver never answers ends at the deadline", async () => {
    const resolve = () => new Promise<never>(() => {});
    expect(await faultOf(get("/ok", {}, open("public", { resolve, deadlineMs: 20 })))).toBe("deadline");
  });

  test("of the operator's list may be private, and nothing else is asked for", async () => {
    const egress = open([`inside.test:${inside.port}`]);
    expect((await egress.send(request(`http://inside.test:${inside.port}/ok`))).status).toBe(200);
    expect(await faultOf(egress.send(request(url("/ok"))))).toBe("policy");
    expect(await faultOf(egress.send(request("http://inside.test/ok")))).toBe("policy");
    expect(asked).toEqual(["inside.test"]);
    expect(await faultOf(open("none").send(request(url("/ok"))))).toBe("policy");
  });

  test("may be an address of IPv6, if the operator names it", async () => {
    const v6 = startHostileWeb({ hostname: "::1" });
    const to = `http://[0:0:0:0:0:0:0:1]:${v6.port}/ok`;
    expect((await open([`[::1]:${v6.port}`]).send(request(to))).url).toBe(`http://[::1]:${v6.port}/ok`);
    expect(v6.requests[0]).toContain(`\r\nHost: [::1]:${v6.port}\r\n`);
    expect(await faultOf(open().send(request(to)))).toBe("address");
    v6.stop();
  });

  test("with several addresses is tried at the next if one does not answer", async () => {
    names["two.test"] = ["127.0.0.3", PUBLIC];
    const egress = open("public", { kindOf: () => "public" });
    expect((await egress.send(request(`http://two.test:${web.port}/ok`))).status).toBe(200);
  });
});

describe("a redirect", () => {
  const to = (target: string, status = 302) => `/to?${status},${encodeURIComponent(target)}`;

  test.each([
    [`http://127.0.0.1:${inside.port}/ok`, "address"],
    [`http://inside.test:${inside.port}/ok`, "address"],
    [`http://[::ffff:127.0.0.1]:${inside.port}/ok`, "address"],
    [`//2130706433:${inside.port}/ok`, "address"],
    ["http://169.254.169.254/latest/meta-data/", "address"],
    ["file:///etc/passwd", "url"],
    ["data:text/plain,hi", "url"],
    [`http://a:b@public.test:${web.port}/ok`, "url"],
  ] as const)("is judged again: %#", async (target, fault) => {
    expect(await faultOf(get(to(target)))).toBe(fault);
    expect(insideConnections()).toBe(0);
  });

  test("is followed three times", async () => {
    const loop = { "/loop": () => "HTTP/1.1 302 Moved\r\nLocation: /loop\r\n\r\n" };
    const endless = startHostileWeb({ hostname: PUBLIC, answers: loop });
    expect(await faultOf(open().send(request(`http://public.test:${endless.port}/loop`)))).toBe("redirect");
    expect(endless.requests.length).toBe(4);
    endless.stop();
  });

  test("is asked about by whoever sends the request", async () => {
    const seen: string[] = [];
    const requireAllowed = ({ host }: { host: string }) => {
      seen.push(host);
      if (host === "other.test") throw new EgressError("policy", "not there");
    };
    expect(await faultOf(get(to(url("/ok", "other.test")), { requireAllowed }))).toBe("policy");
    expect(seen).toEqual(["public.test", "other.test"]);
    expect(asked).toEqual(["public.test"]);
  });

  const credentials = { Authorization: "Bearer hidden", Cookie: "hidden", "X-Key": "hidden", Accept: "text/html" };
  test("carries headers within an origin, and to another only harmless ones", async () => {
    await get(to("/ok"), message({ headers: credentials }));
    expect(web.requests.at(-1)).toContain("Authorization: Bearer hidden");
    await get(to(url("/ok", "other.test")), message({ headers: credentials }));
    expect(web.requests.at(-1)).toContain("Host: other.test");
    expect(web.requests.at(-1)).toContain("Accept: text/html");
    expect(web.requests.at(-1)).not.toContain("hidden");
  });

  test("turns POST into GET where the standard says so, and otherwise sends it again within the origin", async () => {
    const post = message({ method: "POST", headers: { "Content-Type": "text/plain" }, body: Buffer.from("text") });
    for (const [status, line] of [
      [301, "GET /ok"],
      [303, "GET /ok"],
      [307, "POST /ok"],
      [308, "POST /ok"],
    ] as const) {
      await get(to("/ok", status), post);
      const sent = web.requests.at(-1) ?? "";
      expect(sent.startsWith(line)).toBe(true);
      expect(sent.endsWith("\r\n\r\ntext")).toBe(line.startsWith("POST"));
      expect(/content-type/i.test(sent)).toBe(line.startsWith("POST"));
    }
  });

  test("takes no change to another host", async () => {
    const elsewhere = to(url("/ok", "other.test"), 307);
    for (const method of ["POST", "DELETE"]) {
      const body = method === "POST" ? Buffer.from("text") : null;
      expect(await faultOf(get(elsewhere, message({ method, body })))).toBe("redirect");
    }
  });
});

describe("a request", () => {
  test("says whom it is for, and nothing that the host has not written", async () => {
    await get("/ok?a=b#c", message({ headers: { "X-A": "b" } }));
    expect(web.requests.at(-1)?.split("\r\n")).toEqual([
      "GET /ok?a=b HTTP/1.1",
      `Host: public.test:${web.port}`,
      "Connection: close",
      "Accept-Encoding: gzip, deflate, br",
      "User-Agent: Roost",
      "X-A: b",
      "",
      "",
    ]);
  });

  test("may name another program than this one", async () => {
    await get("/ok", message({ headers: { "user-agent": "Heron/1.0" } }));
    expect(web.requests.at(-1)?.match(/user-agent.*/gi)).toEqual(["user-agent: Heron/1.0"]);
  });

  test.each([
    { headers: { "X-A": "b\r\nX-Evil: 1" } },
    { headers: { "X-A": "b\n" } },
    { headers: { "X-A": "b\0" } },
    { headers: { "X-A": "☃" } },
    { headers: { "X-A\r\nX-Evil": "1" } },
    { headers: { "X A": "1" } },
    { headers: { Host: "inside.test" } },
    { headers: { "content-length": "3" } },
    { headers: { "Transfer-Encoding": "chunked" } },
    { headers: { "Proxy-Authorization": "x" } },
    { method: "CONNECT" },
    { method: "TRACE" },
    { method: "GET / HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET" },
    { method: "get" },
    { body: Buffer.from("text") },
  ] satisfies Partial<Message>[])("that could be read in two ways is never sent: %j", async (parts) => {
    const before = web.connections;
    const { fault, message: told } = await failure(get("/ok", message(parts)));
    expect(fault).toBe("url");
    expect(told).not.toContain("Evil: 1");
    expect(web.connections).toBe(before);
  });

  test("is prepared only once its host was judged", async () => {
    const prepare = () => expect.unreachable();
    expect(await faultOf(open("none").send(request(url("/ok"), { prepare })))).toBe("policy");
    const late = async () => ({ method: "GET", headers: {}, body: null, search: "?filled=1" });
    expect((await get("/ok?filled=0", { prepare: late })).url).toBe(url("/ok?filled=1"));
  });

  test("uses no proxy of the environment", async () => {
    const names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY"];
    for (const name of names) process.env[name] = `http://127.0.0.1:${inside.port}`;
    try {
      expect((await get("/ok")).status).toBe(200);
      expect(insideConnections()).toBe(0);
    } finally {
      for (const name of names) delete process.env[name];
    }
  });

  test("that is cancelled closes its connection; one that was cancelled before opens none", async () => {
    const before = web.connections;
    const cancel = new AbortController();
    const sent = faultOf(get("/hang", { signal: cancel.signal }));
    await web.opened(before + 1);
    cancel.abort();
    expect(await sent).toBe("cancelled");
    await web.closed(before + 1);
    expect(await faultOf(get("/ok", { signal: AbortSignal.abort() }))).toBe("cancelled");
    expect(web.connections).toBe(before + 1);
  });

  test("to a port where nobody listens says so", async () => {
    const { fault, message: told } = await failure(open().send(request("http://public.test:9/")));
    expect([fault, told]).toEqual(["connect", "public.test:9 cannot be connected to (ECONNREFUSED)"]);
  });
});

describe("an answer that is read as it comes", () => {
  const stream = (path: string, signal = new AbortController().signal, egress = open()) =>
    egress.open({ ...request(url(path)), signal });

  test("is decoded, closes its connection at its end, and shows a redirect as it is", async () => {
    const answer = await stream("/gzip");
    expect(Buffer.concat(await Array.fromAsync(answer.body)).toString()).toBe("zipped");
    const moved = await stream(`/to?${encodeURIComponent("/ok")}`);
    expect(moved.status).toBe(302);
    moved.close();
    await web.closed(web.connections);
  });

  test("is judged like any other", async () => {
    expect(await faultOf(open().open(request(`http://inside.test:${inside.port}/ok`)))).toBe("address");
    expect(await faultOf(open("none").open(request(url("/ok"))))).toBe("policy");
    expect(insideConnections()).toBe(0);
  });

  test("ends with its signal, before and in the middle of it", async () => {
    const before = web.connections;
    const cancel = new AbortController();
    const answer = await stream("/slow-body", cancel.signal);
    const read = Array.fromAsync(answer.body).then(
      () => "ended",
      () => "broken",
    );
    cancel.abort();
    expect(await read).toBe("broken");
    await web.closed(before + 1);
    expect(await faultOf(stream("/ok", AbortSignal.abort()))).toBe("cancelled");
  });

  test.each([
    ["is read to its end", "/gzip"],
    ["breaks off", "/short"],
    ["is no answer", "/not-http"],
    ["nobody reads", "/slow-body"],
  ])("that %s leaves nothing on a signal that outlives it", async (how, path) => {
    const { signal } = new AbortController();
    const [added, removed] = [spyOn(signal, "addEventListener"), spyOn(signal, "removeEventListener")];
    const answer = await stream(path, signal).catch(() => null);
    if (how === "nobody reads") answer?.close();
    else if (answer !== null) await Array.fromAsync(answer.body).catch(() => {});
    // The connection is closed by the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    const gone = removed.mock.calls.map(([, listener]) => listener);
    const left = added.mock.calls.filter(([, listener]) => !gone.includes(listener));
    expect([added.mock.calls.length > 0, left]).toEqual([true, []]);
  });

  test("that nobody reads is closed by whoever opened it", async () => {
    const before = web.connections;
    (await stream("/slow-body")).close();
    await web.closed(before + 1);
  });
});

test("an account has 16 connections, further requests wait, and another account does not wait for them", async () => {
  const egress = open();
  const before = web.connections;
  const cancel = new AbortController();
  const hanging = Array.from({ length: 20 }, () => egress.send(request(url("/hang"), { signal: cancel.signal })));
  await web.opened(before + 16);
  expect((await egress.send(request(url("/ok"), { accountId: "acc_b" }))).status).toBe(200);
  expect(egress.connections()).toBe(16);
  const waiting = egress.send(request(url("/ok")));
  cancel.abort();
  expect((await Promise.allSettled(hanging)).every(({ status }) => status === "rejected")).toBe(true);
  expect((await waiting).status).toBe(200);
  expect(egress.connections()).toBe(0);
});

test("the host has 64 connections, of which the next account still finds one", async () => {
  const egress = open();
  const before = web.connections;
  const cancel = new AbortController();
  const { signal } = cancel;
  const hanging = Array.from({ length: 90 }, (_, at) =>
    egress.send(request(url("/hang"), { signal, accountId: `acc_${at % 6}` })).catch(() => {}),
  );
  await web.opened(before + 48);
  expect((await egress.send(request(url("/ok"), { accountId: "acc_new" }))).status).toBe(200);
  expect(egress.connections()).toBeLessThanOrEqual(64);
  cancel.abort();
  await Promise.all(hanging);
  expect(egress.connections()).toBe(0);
});

test("outcomes are counted, and refusals reported with the host that was asked for", async () => {
  const egress = open();
  await egress.send(request(url("/ok")));
  await failure(egress.send(request(`http://inside.test:${inside.port}/secret?token=x`)));
  await failure(egress.send(request("http://nowhere.test/")));
  expect(Object.fromEntries(egress.outcomes())).toEqual({ answered: 1, address: 1, dns: 1 });
  expect(refusals).toEqual([
    { accountId: "acc_a", instanceId: "inst_a", runId: "run_a", host: `inside.test:${inside.port}`, fault: "address" },
  ]);
});
