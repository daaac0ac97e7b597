import { isIPv4, isIPv6 } from "node:net";

const MOST_CHARACTERS = 64;

/**
 * What limits of an address are counted by (api.md section 1): an IPv4 address as it is, also where it is written as
 * IPv6, and an IPv6 address by its /64, for that is the least that one customer of a network gets. What is no address is
 * its own text, cut to 64 characters: a proxy that says nonsense shares one limit with itself.
 */
export function addressKey(address: string): string {
  const text = withoutPort(address.trim());
  if (isIPv4(text)) return text;
  const plain = text.replace(/%.*$/s, "");
  if (!isIPv6(plain)) return text.slice(0, MOST_CHARACTERS);
  const groups = groupsOf(plain);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return groups.slice(6).flatMap(bytesOf).join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** Some proxies put the client's port behind its address, which is another for each connection. */
function withoutPort(text: string): string {
  const [, bracketed, bare] = /^(?:\[([^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/.exec(text) ?? [];
  return bracketed ?? bare ?? text;
}

/** The eight groups of an IPv6 address that is well formed. */
function groupsOf(address: string): number[] {
  const [head = "", tail] = address.split("::");
  const [left, right] = [numbersOf(head), numbersOf(tail ?? "")];
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

const numbersOf = (part: string): number[] =>
  part === "" ? [] : part.split(":").flatMap((group) => (group.includes(".") ? pairsOf(group) : parseInt(group, 16)));

function pairsOf(ipv4: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}

const bytesOf = (group: number): number[] => [group >> 8, group & 0xff];
