/** Where a call goes, as far as a remembered approval is narrow by it. Null for a call that goes to no address. */
export interface Target {
  /** With its port. */
  host: string | null;
  method: string | null;
}

const PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/**
 * Where the call of any tool goes whose input has a `url`, and maybe a `method` (else GET). Null for an address that
 * cannot be read: nothing is remembered for it.
 */
export function targetOf(input: unknown): Target | null {
  const { url, method } = (typeof input === "object" && input !== null ? input : {}) as Record<string, unknown>;
  if (url === undefined) return { host: null, method: null };
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  const { protocol, hostname, port } = new URL(url);
  const known = port || PORTS[protocol];
  if (hostname === "" || known === undefined) return null;
  // Without encryption it is another place.
  const host = protocol === "http:" ? `http://${hostname}:${known}` : `${hostname}:${known}`;
  return { host, method: typeof method === "string" ? method.toUpperCase() : "GET" };
}
