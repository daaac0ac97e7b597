import { expect, test } from "bun:test";
import { createEgressPolicy, type EgressSetting } from "../../src/egress/policy.ts";
import { EgressError } from "../../src/egress/refusal.ts";
import { targetOf } from "../../src/egress/target.ts";

const faultOf = (work: () => unknown): string => {
  try {
    work();
    return "none";
  } catch (error) {
    if (error instanceof EgressError) return error.fault;
    throw error;
  }
};

test.each([
  ["http://2130706433/", "127.0.0.1"],
  ["http://0x7f.1/", "127.0.0.1"],
  ["http://0177.0.0.1/", "127.0.0.1"],
  ["http://127.1/", "127.0.0.1"],
  ["http://①②⑦.⓪.⓪.①/", "127.0.0.1"],
  ["http://１２７.0.0.1/", "127.0.0.1"],
  ["http://127.0.0.1./", "127.0.0.1"],
  ["http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"],
  ["http://[0:0::1]/", "::1"],
  ["http://LOCALHOST./", "localhost"],
  ["http://bücher.example/", "xn--bcher-kva.example"],
  ["https://example.org\\@internal/", "example.org"],
  ["http://example.org%2f@internal/", null],
])("%s goes to %s: one reading of it, which is then judged", (url, host) => {
  if (host === null) expect(faultOf(() => targetOf(url))).toBe("url");
  else expect(targetOf(url).host).toBe(host);
});

test.each([
  "http://a@b\\@c",
  "http://user:pass@example.org/",
  "http://@example.org:pass@internal/",
  "file:///etc/passwd",
  "data:text/plain,hi",
  "ftp://example.org/",
  "javascript:alert(1)",
  "gopher://example.org/",
  "blob:http://example.org/x",
  "http://",
  "http:///",
  "http://exa mple/",
  "http://example.org:99999/",
  "http://[fe80::1%25eth0]/",
  "http://[fe80::1%eth0]/",
  "http://256.1.1.1/",
  "http://example..",
  "example.org",
  "//example.org/",
  "",
  `http://example.org/${"a".repeat(9_000)}`,
])("%p is refused as a URL", (url) => expect(faultOf(() => targetOf(url))).toBe("url"));

test("a fragment stays here", () => {
  expect(targetOf("https://example.org/a?b#c").url.href).toBe("https://example.org/a?b");
});

const permits = (setting: EgressSetting, url: string): boolean =>
  faultOf(() => createEgressPolicy(setting).requirePermitted(targetOf(url))) === "none";

test("none permits nothing, public every name, a list only what is in it, with its port", () => {
  expect(permits("none", "https://example.org/")).toBe(false);
  expect(permits("none", "https://none/")).toBe(false);
  expect(permits("public", "https://example.org:8443/")).toBe(true);
  const list = ["example.org", "printer.lan:8080", "[::1]:9", "bücher.example"];
  for (const url of [
    "http://example.org",
    "https://EXAMPLE.org./",
    "http://printer.lan:8080/x",
    "https://[0::1]:9",
    "https://xn--bcher-kva.example",
  ]) {
    expect([url, permits(list, url)]).toEqual([url, true]);
  }
  for (const url of [
    "http://example.org:8080",
    "https://www.example.org",
    "http://printer.lan",
    "https://example.org.evil",
    "http://[::1]",
  ]) {
    expect([url, permits(list, url)]).toEqual([url, false]);
  }
  expect(permits(["public", "printer.lan"], "https://example.org")).toBe(true);
});

test("a private address is reached only under a name of the list, and some under none", () => {
  const reach = (setting: EgressSetting, addresses: string[], url = "http://printer.lan/") =>
    faultOf(() =>
      createEgressPolicy(setting).requireReachable(targetOf(url), addresses, (one) =>
        one === "10.0.0.1" ? "private" : one === "169.254.169.254" ? "never" : "public",
      ),
    );
  expect(reach("public", ["8.8.8.8"])).toBe("none");
  expect(reach("public", ["10.0.0.1"])).toBe("address");
  expect(reach("public", ["8.8.8.8", "10.0.0.1"])).toBe("address");
  expect(reach(["printer.lan"], ["10.0.0.1"])).toBe("none");
  expect(reach(["public", "printer.lan"], ["10.0.0.1"])).toBe("none");
  expect(reach(["public", "printer.lan"], ["10.0.0.1"], "http://evil.example/")).toBe("address");
  expect(reach(["printer.lan"], ["169.254.169.254"])).toBe("address");
  expect(reach(["printer.lan"], ["10.0.0.1", "169.254.169.254"])).toBe("address");
});
