import { readFile } from "node:fs/promises";
import { hasCode } from "../lib/system-error.ts";
import { EgressError } from "./refusal.ts";
import { shownHost, type Target } from "./target.ts";

/** All addresses of a host name, in the order in which they are to be tried. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<string[]>;

const HOSTS_FILE = "/etc/hosts";
/** As the C library does by default. */
const ASKING = { timeout: 5_000, tries: 2 };

/**
 * Of any name: asks the hosts file, and then the system's name servers from this thread. The system's own resolver would take
 * one of the few threads that also wait for the disk, for as long as somebody's name server is silent.
 */
export const resolveByServers: Resolve = async (host, signal) => {
  const known = await fromHostsFile(host);
  if (known.length > 0) return known;
  signal.throwIfAborted();
  const { Resolver } = await import("node:dns/promises");
  // A new one reads the system's settings as they are now.
  const resolver = new Resolver(ASKING);
  const cancel = () => resolver.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const found = [v4, v6].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (found.length === 0 && v4.status === "rejected") throw v4.reason;
    return found;
  } finally {
    signal.removeEventListener("abort", cancel);
  }
};

/** The file may be long, with all that its owner does not want to see: it is searched rather than parsed. */
async function fromHostsFile(host: string): Promise<string[]> {
  const text = (await readFile(HOSTS_FILE, "utf8").catch(() => "")).toLowerCase();
  if (!text.includes(host)) return [];
  const lines = text.matchAll(
    new RegExp(`^[ \\t]*([^\\s#]+)[ \\t](?:[^#\\n]*[ \\t])?${RegExp.escape(host)}(?=[\\s#]|$)`, "gm"),
  );
  return Array.from(lines, ([, address = ""]) => address);
}

const asked = new Map<string, Promise<string[]>>();

/** Of names that the operator gives: the system's own resolver, which knows those of the local network. One lookup of each. */
export const resolveBySystem: Resolve = (host) => {
  const known = asked.get(host);
  if (known) return known;
  const found = lookUp(host).finally(() => asked.delete(host));
  asked.set(host, found);
  return found;
};

async function lookUp(host: string): Promise<string[]> {
  const { lookup } = await import("node:dns/promises");
  const found = await lookup(host, { all: true, order: "ipv4first" });
  return found.map(({ address }) => address);
}

/** The codes of a lookup that was not answered, or not with an answer. */
const UNANSWERED = ["ETIMEOUT", "ESERVFAIL", "EREFUSED", "ECONNREFUSED", "EAI_AGAIN"];

/** Resolves the target's name, once. Throws `EgressError`, or the signal's reason: a lookup may then be left behind. */
export async function addressesOf(target: Target, resolve: Resolve, signal: AbortSignal): Promise<string[]> {
  if (target.isAddress) return [target.host];
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", abort, { once: true });
  let found: string[];
  try {
    found = await Promise.race([resolve(target.host, signal), aborted]);
  } catch (cause) {
    signal.throwIfAborted();
    const why = hasCode(cause, ...UNANSWERED) ? "its name server does not answer" : "check its spelling";
    throw new EgressError("dns", `the name ${shownHost(target)} cannot be resolved: ${why}`, { cause });
  } finally {
    signal.removeEventListener("abort", abort);
  }
  if (found.length === 0) throw new EgressError("dns", `the name ${shownHost(target)} has no address`);
  return found;
}
