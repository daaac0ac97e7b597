import { expect, spyOn, test } from "bun:test";
import os from "node:os";
import { kindFromHere, kindOf } from "../../src/egress/address.ts";

test.each([
  "8.8.8.8",
  "1.1.1.1",
  "93.184.216.34",
  "100.63.255.255",
  "172.32.0.1",
  "192.167.1.1",
  "2606:4700::1111",
  "2a00:1450::1",
])("%s is public", (address) => expect(kindOf(address)).toBe("public"));

test.each([
  "10.0.0.1",
  "127.0.0.1",
  "127.255.255.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "100.64.0.1",
  "100.127.255.255",
  "::1",
  "0:0:0:0:0:0:0:1",
  "fc00::1",
  "fdff::1",
])("%s is private: reached only where the operator names the host", (address) =>
  expect(kindOf(address)).toBe("private"),
);

test.each([
  // This network, link-local and the metadata services of clouds.
  "0.0.0.0",
  "0.1.2.3",
  "169.254.169.254",
  "169.254.0.1",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd00:0ec2:0:0::254",
  "fe80::1",
  "fe80::1%eth0",
  "febf::1",
  // Documentation, benchmarks, relays, multicast, reserved, broadcast.
  "192.0.2.1",
  "198.51.100.7",
  "203.0.113.9",
  "198.18.0.1",
  "198.19.255.255",
  "192.88.99.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "2001:db8::1",
  "3fff::1",
  "ff02::1",
  "fec0::1",
  // IPv4 inside of IPv6: mapped, compatible, NAT64, 6to4, Teredo.
  "::ffff:8.8.8.8",
  "::ffff:7f00:1",
  "::FFFF:10.0.0.1",
  "0:0:0:0:0:ffff:127.0.0.1",
  "::127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b:1::1",
  "2002:7f00:1::",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "4000::1",
  // No addresses.
  "",
  "localhost",
  "1.2.3",
  "0x7f.1",
  "2130706433",
])("%p is never reached", (address) => expect(kindOf(address)).toBe("never"));

test("this machine's own addresses are never public: what listens on them expects nobody from inside", () => {
  for (const one of Object.values(os.networkInterfaces()).flatMap((list) => list ?? [])) {
    expect(kindFromHere(one.address)).not.toBe("public");
  }
});

test("a public address of this machine is private in each of its spellings, and no other becomes so", () => {
  const common = { netmask: "", mac: "", internal: false, cidr: null };
  using _ = spyOn(os, "networkInterfaces").mockReturnValue({
    eth0: [
      { ...common, family: "IPv4", address: "8.8.4.4" },
      { ...common, family: "IPv6", address: "2a00::1", scopeid: 0 },
    ],
    eth1: undefined,
  });
  for (const own of ["8.8.4.4", "2a00::1", "2A00:0:0::0001", "2a00:0000:0000:0000:0000:0000:0000:0001"]) {
    expect([kindOf(own), kindFromHere(own)]).toEqual(["public", "private"]);
  }
  for (const other of ["8.8.8.8", "2a00::2"]) expect(kindFromHere(other)).toBe("public");
  // Its own or not, an address that is reached under no policy stays so.
  expect(kindFromHere("::ffff:8.8.4.4")).toBe("never");
});
