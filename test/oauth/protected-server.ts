import type { AuthorizationServer } from "./provider.ts";

/** A server that wants a token for itself, by the rules of the protocol (RFC 9728). */
export interface ProtectedServer {
  url: string;
  stop(): void;
}

/** What it answers to whoever shows no good token, and to who asks where to get one; undefined for all others. */
export async function refusalOf(
  { issuer, subjectOf }: Pick<AuthorizationServer, "issuer" | "subjectOf">,
  request: Request,
): Promise<Response | undefined> {
  const { origin, pathname } = new URL(request.url);
  const resource = `${origin}/mcp`;
  const metadata = `${origin}/metadata/of/the-resource`;
  if (`${origin}${pathname}` === metadata) {
    return Response.json({ resource, authorization_servers: [issuer], scopes_supported: ["tools"] });
  }
  const [, token = ""] = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
  if ((await subjectOf(token, resource)) !== null) return undefined;
  return new Response(null, { status: 401, headers: { "WWW-Authenticate": `Bearer resource_metadata="${metadata}"` } });
}

export function startProtectedServer(provider: Pick<AuthorizationServer, "issuer" | "subjectOf">): ProtectedServer {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => (await refusalOf(provider, request)) ?? new Response("here you are"),
  });
  return { url: `http://127.0.0.1:${server.port}/mcp`, stop: () => void server.stop(true) };
}
