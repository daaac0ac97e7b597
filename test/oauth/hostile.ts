/** What a hostile or broken pair of an MCP server and its authorization server says; everything else is as it should be. */
export interface Lies {
  /** The protected-resource metadata, or another answer. */
  resource?: (true_: Record<string, unknown>) => Record<string, unknown> | Response;
  /** The authorization server's metadata, or another answer. */
  metadata?: (true_: Record<string, unknown>) => Record<string, unknown> | Response;
  challenge?: string;
  register?: (asked: Record<string, unknown>) => Response;
  token?: (form: URLSearchParams) => Response | Promise<Response>;
}

export interface HostilePair {
  /** Of the MCP server. */
  url: string;
  issuer: string;
  port: number;
  /** The forms that the token endpoint was sent. */
  forms: URLSearchParams[];
  /** Everything that was asked for, as `GET /path`. */
  asked: string[];
  lies: Lies;
  stop(): void;
}

const TOKENS = { access_token: "access-1", token_type: "Bearer", expires_in: 3_600, refresh_token: "refresh-1" };

export const tokens = (parts: Record<string, unknown> = {}): Response => Response.json({ ...TOKENS, ...parts });

export function startHostilePair(lies: Lies = {}): HostilePair {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: (request) => answer(request) });
  const issuer = `http://127.0.0.1:${server.port}`;
  const pair: HostilePair = {
    ...{ url: `${issuer}/mcp`, issuer, port: server.port ?? 0, forms: [], asked: [], lies },
    stop: () => void server.stop(true),
  };
  const either = (made: Record<string, unknown> | Response) => (made instanceof Response ? made : Response.json(made));

  async function answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    pair.asked.push(`${request.method} ${pathname}`);
    const { resource, metadata, challenge, register, token } = pair.lies;
    switch (pathname) {
      case "/mcp":
        return new Response(null, { status: 401, headers: { "WWW-Authenticate": challenge ?? "Bearer" } });
      case "/.well-known/oauth-protected-resource/mcp": {
        const told = { resource: pair.url, authorization_servers: [issuer], scopes_supported: ["tools"] };
        return either(resource?.(told) ?? told);
      }
      case "/.well-known/oauth-authorization-server": {
        const told = {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          registration_endpoint: `${issuer}/register`,
          revocation_endpoint: `${issuer}/revoke`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
          authorization_response_iss_parameter_supported: true,
        };
        return either(metadata?.(told) ?? told);
      }
      case "/register": {
        const asked = (await request.json()) as Record<string, unknown>;
        return register?.(asked) ?? Response.json({ ...asked, client_id: "client-1" }, { status: 201 });
      }
      case "/token": {
        const form = new URLSearchParams(await request.text());
        pair.forms.push(form);
        return (await token?.(form)) ?? tokens();
      }
      case "/revoke":
        pair.forms.push(new URLSearchParams(await request.text()));
        return new Response(null);
      default:
        return new Response(null, { status: 404 });
    }
  }
  return pair;
}
