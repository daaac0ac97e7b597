import { EgressError } from "./refusal.ts";
import { shownHost, type Target } from "./target.ts";

/** All addresses of a host name, in the order in which they are to be tried. */
export type Resolve = (host: string) => Promise<string[]>;

/** The system's resolver, with its hosts file. */
export const resolveBySystem: Resolve = async (host) => {
  const { lookup } = await import("node:dns/promises");
  const found = await lookup(host, { all: true, order: "ipv4first" });
  return found.map(({ address }) => address);
};

/** Resolves the target's name, once. Throws `EgressError`, or the signal's reason: a lookup is then left behind. */
export async function addressesOf(target: Target, resolve: Resolve, signal: AbortSignal): Promise<string[]> {
  if (target.isAddress) return [target.host];
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", abort, { once: true });
  let found: string[];
  try {
    found = await Promise.race([resolve(target.host), aborted]);
  } catch (cause) {
    signal.throwIfAborted();
    throw new EgressError("dns", `the name ${shownHost(target)} cannot be resolved: check its spelling`, { cause });
  } finally {
    signal.removeEventListener("abort", abort);
  }
  if (found.length === 0) throw new EgressError("dns", `the name ${shownHost(target)} has no address`);
  return found;
}
