import { BlockList, isIP, isIPv4 } from "node:net";
import os from "node:os";
import { lazily } from "../lib/lazily.ts";

/**
 * `public`: the internet. `private`: reached only under a name that the operator has listed. `never`: reached under no
 * policy.
 */
export type AddressKind = "public" | "private" | "never";

/** Made when the first address is judged: it would take milliseconds of every start. */
const rangesOf = (...ranges: string[]): (() => BlockList) =>
  lazily(() => {
    const list = new BlockList();
    for (const range of ranges) {
      const [address = "", bits = ""] = range.split("/");
      list.addSubnet(address, Number(bits), isIPv4(address) ? "ipv4" : "ipv6");
    }
    return list;
  });

/** Services by which clouds hand out a machine's credentials, where no range below covers them. */
const METADATA = rangesOf("100.100.100.200/32", "fd00:ec2::254/128");

/** Loopback, private networks (RFC 1918, RFC 4193) and those behind a provider's address translation (RFC 6598). */
const PRIVATE = rangesOf(
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "::1/128",
  "fc00::/7",
);

/** IANA's special-purpose registry of IPv4, besides the private ranges: nobody's host is there. */
const SPECIAL_V4 = rangesOf(
  "0.0.0.0/8",
  "169.254.0.0/16",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  // Multicast, reserved, broadcast.
  "224.0.0.0/3",
);

/** Of IPv6 only this is public: what IANA has given to networks … */
const GLOBAL_V6 = rangesOf("2000::/3");
/** … except protocol assignments with Teredo, documentation, and 6to4. Mapped addresses and NAT64 are outside of it. */
const SPECIAL_V6 = rangesOf("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20");

/**
 * What kind of address this is. Forms that carry an IPv4 address inside (mapped, NAT64, 6to4, Teredo) are `never`,
 * whatever they carry: a name that is really public has an honest record too.
 */
export function kindOf(address: string): AddressKind {
  const version = isIP(address);
  if (version === 0 || address.includes("%")) return "never";
  // The list takes a mapped address for the one inside.
  if (version === 6 && plain(address).startsWith("[::ffff:")) return "never";
  const isIn = (list: () => BlockList) => list().check(address, version === 4 ? "ipv4" : "ipv6");
  if (isIn(METADATA)) return "never";
  if (isIn(PRIVATE)) return "private";
  if (version === 4 ? isIn(SPECIAL_V4) : !isIn(GLOBAL_V6) || isIn(SPECIAL_V6)) return "never";
  return "public";
}

/** As `kindOf`; this machine's own public addresses are private: what listens there may expect no visitors. */
export function kindFromHere(address: string): AddressKind {
  const kind = kindOf(address);
  return kind === "public" && isOwn(address) ? "private" : kind;
}

function isOwn(address: string): boolean {
  const own = Object.values(os.networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.some((one) => isSame(one.address, address));
}

/** Whether two texts are the same address. */
export function isSame(one: string, other: string): boolean {
  return isIP(one) !== 0 && isIP(one) === isIP(other) && plain(one) === plain(other);
}

/** IPv6 has many spellings; the URL parser knows one. */
const plain = (address: string): string => (isIPv4(address) ? address : new URL(`http://[${address}]/`).hostname);
