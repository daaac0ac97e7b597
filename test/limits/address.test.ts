import { expect, test } from "bun:test";
import { addressKey } from "../../src/limits/address.ts";

test.each([
  ["192.0.2.7", "192.0.2.7"],
  [" 192.0.2.7 ", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::FFFF:192.0.2.7", "192.0.2.7"],
  ["::ffff:c000:207", "192.0.2.7"],
  ["0:0:0:0:0:ffff:c000:0207", "192.0.2.7"],
  ["::ffff:192.0.2.7%eth0", "192.0.2.7"],
  ["255.255.255.255", "255.255.255.255"],
])("%s is the IPv4 address %s", (address, key) => {
  expect(addressKey(address)).toBe(key);
});

test.each([
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"],
  ["2001:0DB8:0001:0002::1", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001::1:2:3:4:5", "2001:0:0:1::/64"],
  ["::1", "0:0:0:0::/64"],
  ["::", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["64:ff9b::192.0.2.7", "64:ff9b:0:0::/64"],
  ["1:2:3:4:5:6:192.0.2.7", "1:2:3:4::/64"],
  ["::fffe:192.0.2.7", "0:0:0:0::/64"],
  ["0:0:0:1:0:ffff:c000:207", "0:0:0:1::/64"],
])("%s counts by its /64, %s", (address, key) => {
  expect(addressKey(address)).toBe(key);
});

test.each([
  ["192.0.2.7:50123", "192.0.2.7"],
  ["[2001:db8:1:2::9]:50123", "2001:db8:1:2::/64"],
  ["[2001:db8:1:2::9]", "2001:db8:1:2::/64"],
])("the port that a proxy appends in %s is ignored", (address, key) => {
  expect(addressKey(address)).toBe(key);
});

test.each([[""], ["unknown"], ["999.0.2.7"], ["192.0.2"], ["1:2:3"], ["1::2::3"], ["gggg::1"], ["[]"], ["a b"]])(
  "%p is not an address, and is its own key",
  (text) => {
    expect(addressKey(text)).toBe(text === "[]" ? "" : text);
  },
);

test("a text that is not an address is cut to 64 characters", () => {
  expect(addressKey("x".repeat(10_000))).toBe("x".repeat(64));
  expect(addressKey(`fe80::1%${"z".repeat(10_000)}`)).toBe("fe80:0:0:0::/64");
  expect(addressKey(`::1%${"%".repeat(10_000)}`).length).toBeLessThanOrEqual(64);
});

test("every spelling of an address has the same key, and every /64 its own", () => {
  const hex = (group: number) => group.toString(16);
  const keys = new Set<string>();
  for (let network = 0; network < 1_000; network++) {
    const groups = [0x2001, 0xdb8, network >> 8, network & 0xff, 0, network, 0, 7];
    const spellings = [
      groups.map(hex).join(":"),
      groups.map((group) => hex(group).padStart(4, "0").toUpperCase()).join(":"),
      `${groups.slice(0, 4).map(hex).join(":")}::7`,
    ];
    const of = new Set(spellings.map(addressKey));
    expect(of.size).toBe(1);
    for (const key of of) keys.add(key);
  }
  expect(keys.size).toBe(1_000);
});
