import { expect, test } from "bun:test";
import { lookup } from "node:dns/promises";
import { hostname } from "node:os";
import { listen } from "../../src/http/listener.ts";
import { reachableUrl } from "../../src/http/reachable-url.ts";

test.each([
  ["127.0.0.1", "http://127.0.0.1:1"],
  ["0.0.0.0", "http://localhost:1"],
  ["::", "http://localhost:1"],
  ["0:0:0:0:0:0:0:0", "http://localhost:1"],
  ["::1", "http://[::1]:1"],
  ["fe80::1", "http://[fe80::1]:1"],
  ["roost.example", "http://roost.example:1"],
])("a listener on %s is reached at %s", (host, url) => {
  expect(reachableUrl(host, 1)).toBe(url);
});

const listenOn = (hostname: string) =>
  listen({ hostname, port: 0, publicUrl: null, trustProxy: false, openFiles: null, log: { warn() {}, error() {} } });

test.each(["0.0.0.0", "127.0.0.1", "localhost"])("a listener on %s answers at its URL", async (hostname) => {
  const listener = listenOn(hostname);
  try {
    listener.answerWith(() => new Response("here"));
    expect(await (await fetch(listener.url)).text()).toBe("here");
  } finally {
    await listener.stop();
  }
});

/** A name of this machine that leads to loopback need not exist. */
const ownName = (await lookup(hostname()).catch(() => null))?.address.startsWith("127.") ? [hostname()] : [];

test.each(["127.0.0.1", "localhost", "LOCALHOST", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", ...ownName])(
  "a listener on loopback, written as %s, answers to its own names only: no page can rebind its name to it",
  async (host) => {
    const listener = listenOn(host);
    try {
      listener.answerWith(() => new Response("here"));
      expect((await fetch(listener.url)).status).toBe(200);
      expect((await fetch(listener.url, { headers: { Host: "evil.example" } })).status).toBe(403);
    } finally {
      await listener.stop();
    }
  },
);
