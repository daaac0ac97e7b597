import { expect, test } from "bun:test";
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

test.each(["0.0.0.0", "127.0.0.1", "localhost"])("a listener on %s answers at its URL", async (hostname) => {
  const listener = listen({ hostname, port: 0, publicUrl: null, trustProxy: false, log: { warn() {}, error() {} } });
  try {
    listener.answerWith(() => new Response("here"));
    expect(await (await fetch(listener.url)).text()).toBe("here");
  } finally {
    await listener.stop();
  }
});
