/** Each threat by requests (docs/contract/security.md, Requests of agents), tried on the compiled binary. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hostname, networkInterfaces } from "node:os";
import { makeCertificates } from "../egress/certificates.ts";
import { startHostileWeb } from "../egress/hostile-web.ts";
import { canServeNames, startAttackersNames } from "./name-server.ts";
import { type Agent, type Call, startWorld, type World } from "./world.ts";

const certificates = makeCertificates("IP:127.0.0.1");
/** Named by the operator, with a certificate of an authority that nobody trusts. */
const unknown = startHostileWeb({ tls: certificates.of("IP:127.0.0.1") });
/** What the environment calls a proxy. */
const proxy = startHostileWeb();
let names: Awaited<ReturnType<typeof startAttackersNames>> | null = null;
let world: World;
let agent: Agent;
beforeAll(async () => {
  names = canServeNames() ? await startAttackersNames() : null;
  const proxyUrl = `http://127.0.0.1:${proxy.port}`;
  world = await startWorld({
    ...(names ? { under: names.under } : {}),
    env: {
      ...{ HTTP_PROXY: proxyUrl, http_proxy: proxyUrl, HTTPS_PROXY: proxyUrl, ALL_PROXY: proxyUrl },
      ...{ NODE_TLS_REJECT_UNAUTHORIZED: "0", NO_PROXY: "127.0.0.1" },
    },
    egress: [`127.0.0.1:${unknown.port}`, "named.test"],
  });
  // Nobody is asked, so that only the guard stands between the agent and the address.
  agent = await world.newAgent({ http_request: "always" });
});
afterAll(async () => {
  expect([world.inside.connections, proxy.connections]).toEqual([0, 0]);
  world.expectNothingLeaked();
  await world[Symbol.asyncDispose]();
  names?.close();
  for (const web of [unknown, proxy]) web.stop();
});

/** What both tools say of these addresses, all at once. */
async function answersOf(urls: readonly string[], more: object = {}): Promise<Map<string, string[]>> {
  const calls = urls.flatMap((url): Call[] => [
    ["web_fetch", { url }],
    ["http_request", { method: "GET", url, ...more }],
  ]);
  const { frames } = await agent.runAnew(calls);
  const outputs = new Map(
    frames.filter(({ event }) => event === "tool.completed").map(({ data }) => [data.toolCallId, data.output]),
  );
  return new Map(urls.map((url, at) => [url, [0, 1].map((one) => outputs.get(`call_0_${2 * at + one}`) ?? "")]));
}
async function expectRefused(urls: readonly string[], why: RegExp): Promise<void> {
  for (const [url, answers] of await answersOf(urls)) {
    for (const answer of answers) expect([url, answer]).toEqual([url, expect.stringMatching(why)]);
  }
  expect(world.inside.connections).toBe(0);
}
const NOT_ALLOWED = /is not public|may not reach/;

test("as a control: what is named is reached, by either tool", async () => {
  const url = `${world.shop.url}/ok`;
  const [answers = []] = (await answersOf([url])).values();
  expect(answers).toEqual([expect.stringContaining("ok"), expect.stringContaining("Status: 200 OK")]);
});

describe("a host that agents are not meant for", () => {
  test("another port or name of a named host, and the host's own API and model server, are not named with it", async () => {
    const { port } = world.shop;
    const own = new URL(world.server.url).port;
    const urls = [`http://localhost:${port}/`, "http://127.0.0.1/", `http://127.0.0.1:${own}/v1/host`];
    await expectRefused([...urls, `http://127.0.0.1:${world.inside.port}/`], NOT_ALLOWED);
  });
});

describe("addresses that are never meant", () => {
  test("link-local, metadata, multicast, reserved, and IPv6 with an IPv4 inside", async () => {
    const inside = [
      "[::ffff:127.0.0.1]",
      "[::ffff:7f00:1]",
      "[0:0:0:0:0:ffff:7f00:0001]",
      "[::127.0.0.1]",
      "[::7f00:1]",
    ];
    const carried = ["[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[2001:0:7f00:1::]"];
    const never = [
      "169.254.169.254",
      "169.254.1.1",
      "100.100.100.200",
      "224.0.0.1",
      "255.255.255.255",
      "0.0.0.0",
      "240.0.0.1",
    ];
    const six = ["[fe80::1]", "[ff02::1]", "[fd00:ec2::254]", "[::]", "[fec0::1]"];
    const hosts = [...inside, ...carried, ...never, ...six];
    await expectRefused(
      hosts.map((host) => `http://${host}:${world.inside.port}/latest/meta-data/`),
      NOT_ALLOWED,
    );
  });

  test("loopback, private networks, and this machine's own addresses and name", async () => {
    const { port } = world.inside;
    const own = Object.values(networkInterfaces()).flatMap((all) =>
      (all ?? []).filter(({ family }) => family === "IPv4"),
    );
    const hosts = [
      "127.0.0.1",
      "127.8.8.8",
      "[::1]",
      "10.0.0.1",
      "172.16.0.1",
      "192.168.1.1",
      "100.64.0.1",
      "[fc00::1]",
    ];
    const urls = [...hosts, ...own.map(({ address }) => address), "localhost", "localhost."].map(
      (host) => `http://${host}:${port}/`,
    );
    await expectRefused(urls, NOT_ALLOWED);
    await expectRefused([`http://${hostname()}:${port}/`], /is not public|may not reach|cannot be resolved/);
  });
});

describe("a URL that two readers understand differently", () => {
  test("numbers, letters and backslashes that mean loopback are read once, and refused", async () => {
    const { port } = world.inside;
    const hosts = [
      "0x7f.1",
      "0x7f000001",
      "0x7f.0x0.0x0.0x1",
      "2130706433",
      "017700000001",
      "0177.0.0.1",
      "127.1",
      "127.0.1",
    ];
    const letters = ["①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1", "LOCALHOST", "loc%61lhost", "127.0.0.1%2e"];
    await expectRefused(
      [...hosts, ...letters].map((host) => `http://${host}:${port}/`),
      NOT_ALLOWED,
    );
    await expectRefused(
      [`http:\\\\127.0.0.1:${port}\\`, `http:/127.0.0.1:${port}/`, `http:127.0.0.1:${port}`],
      NOT_ALLOWED,
    );
  });

  test("user names, passwords, other schemes and what is no URL are refused before anything is looked up", async () => {
    const { port } = world.inside;
    const { host } = world.shop;
    const users = ["http://a@b\\@c", `http://a@${host}\\@127.0.0.1:${port}/`, `http://${host}@127.0.0.1:${port}/`];
    await expectRefused([...users, `http://${host}:x@127.0.0.1:${port}/`], /user name|not a URL/);
    const schemes = ["file:///etc/passwd", "file://127.0.0.1/etc/passwd", "data:text/plain,x", "ftp://127.0.0.1/"];
    const more = [
      "gopher://127.0.0.1:70/_",
      "blob:http://127.0.0.1/x",
      "jar:http://127.0.0.1!/",
      "unix:/run/docker.sock",
    ];
    await expectRefused([...schemes, ...more], /cannot be fetched|not a URL/);
    await expectRefused(
      ["//127.0.0.1/", "http://", "http://127.0.0.1:99999/", "http://[fe80::1%25lo]/", " "],
      /not a URL/,
    );
  });
});

describe("a redirect", () => {
  const to = (url: string, status = 302) => `${world.shop.url}/to?${status},${encodeURIComponent(url)}`;

  test("to loopback, in any form, is judged as a first request is", async () => {
    const { port } = world.inside;
    const hosts = ["127.0.0.1", "localhost", "0x7f.1", "[::1]", "[::ffff:7f00:1]", "169.254.169.254"];
    const urls = hosts.flatMap((host) => [301, 307].map((status) => to(`http://${host}:${port}/`, status)));
    await expectRefused(
      [...urls, to("file:///etc/passwd"), to("//localhost:1/"), to(to(`http://127.1:${port}/`))],
      /is not public|may not reach|cannot be fetched/,
    );
  });

  test("goes round at most three times", async () => {
    let url = `${world.shop.url}/ok`;
    for (let times = 0; times < 4; times++) url = to(url);
    await expectRefused([url], /redirect/);
  });
});

describe("a false server", () => {
  test("without a certificate of a known authority is not spoken to, whatever the environment says", async () => {
    await expectRefused([`https://127.0.0.1:${unknown.port}/ok`], /certificate/);
    expect(unknown.requests).toEqual([]);
  });
});

describe("an endless, slow or exploding answer", () => {
  test.each(["/endless", "/bomb-gzip", "/bomb-br", "/bomb-twice", "/huge-header", "/many-headers", "/endless-interim"])(
    "%s ends as an error",
    async (path) => {
      const { results } = await agent.runAnew(["web_fetch", { url: world.shop.url + path }]);
      expect(results).toEqual([expect.stringMatching(/larger|more than|long|too (?:large|many)|encod/i)]);
    },
  );
});

describe("a header that becomes two", () => {
  test("line breaks are refused, and headers that frame a message are the host's", async () => {
    const lines = [
      "a\r\nX-Evil: 1",
      "a\nX-Evil: 1",
      "a\r\n\r\nGET /evil HTTP/1.1",
      "a\u0000b",
      "a\u010d\u010aX-Evil: 1",
    ];
    const framing = ["Host", "Content-Length", "Transfer-Encoding", "Connection", "X-A\r\nX-Evil", "X Evil:"];
    const headers = [...lines.map((value) => ({ "X-A": value })), ...framing.map((name) => ({ [name]: "1" }))];
    const before = world.shop.requests.length;
    for (const given of headers) {
      const url = `${world.shop.url}/ok`;
      const { results } = await agent.runAnew(["http_request", { method: "GET", url, headers: given }]);
      expect([given, results]).toEqual([given, [expect.stringMatching(/header/)]]);
    }
    expect(world.shop.requests.slice(before)).toEqual([]);
  });
});

describe.skipIf(!canServeNames())(
  "a name that leads into the host's network (skipped where no name server can be set up)",
  () => {
    test("is refused if any of its addresses is not public", async () => {
      const { port } = world.inside;
      const hosts = ["loopback.test", "half.test", "mapped.test", "metadata.test"];
      await expectRefused(
        hosts.map((host) => `http://${host}:${port}/`),
        NOT_ALLOWED,
      );
    });

    test("or to another address the second time: it is asked for once, and refused when it is", async () => {
      const url = `http://rebinding.test:${world.inside.port}/`;
      const first = await agent.runAnew(["web_fetch", { url }]);
      // The first answer is public: it is that address which is connected to, and nobody is there.
      expect(first.results).toEqual([expect.stringMatching(/cannot be connected to|did not accept/)]);
      expect(names?.asked("rebinding.test")).toBe(1);
      const second = await agent.runAnew(["web_fetch", { url }]);
      expect(second.results).toEqual([expect.stringContaining("is not public")]);
      expect(names?.asked("rebinding.test")).toBe(2);
      expect(world.inside.connections).toBe(0);
    });

    test("unless the operator names it, and then with its port", async () => {
      await expectRefused([`http://named.test:${world.inside.port}/`], NOT_ALLOWED);
    });
  },
);
