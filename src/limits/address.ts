import { isIPv4, isIPv6 } from "node:net";

const MAX_CHARACTERS = 64;

/**
 * The key by which requests from an address are limited (docs/contract/api.md, Conventions): an IPv4 address itself,
 * also when written as IPv6; an IPv6 address's /64, the smallest block that a network gives a customer. Any other text
 * is its own key, cut to 64 characters.
 */
export function addressKey(address: string): string {
  const text = withoutPort(address.trim());
  if (isIPv4(text)) return text;
  const plain = text.replace(/%.*$/s, "");
  if (!isIPv6(plain)) return text.slice(0, MAX_CHARACTERS);
  const groups = groupsOf(plain);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return groups.slice(6).flatMap(bytesOf).join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** Some proxies append the client's port, which differs between connections. */
function withoutPort(text: string): string {
  const [, bracketed, bare] = /^(?:\[([^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/.exec(text) ?? [];
  return bracketed ?? bare ?? text;
}

/** The eight groups of a well-formed IPv6 address. */
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
