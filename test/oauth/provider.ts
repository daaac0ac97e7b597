import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

/** A real authorization server on loopback: anybody may register a client, and everybody is who they say. */
export interface AuthorizationServer {
  issuer: string;
  /** Whose access token for this resource it is; null if it is none, or no longer good. */
  subjectOf(token: string, resource: string): Promise<string | null>;
  /** How often a refresh token was answered with tokens, and how often refused. */
  refreshed: { granted: number; refused: number };
  /** The tokens that clients have revoked. */
  revoked: string[];
  /** The life of the access tokens that it gives from now on, in seconds. */
  lifeSeconds: number;
  /** Whether it renews nothing. */
  refuses: boolean;
  stop(): Promise<void>;
}

export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  let answer: ReturnType<Provider["callback"]> | undefined;
  const server = createServer((request, response) => void answer?.(request, response));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const made = {
    issuer,
    lifeSeconds: 3_600,
    refuses: false,
    refreshed: { granted: 0, refused: 0 },
    revoked: [] as string[],
  };
  const provider = quietly(
    () =>
      new Provider(issuer, {
        cookies: { keys: ["only for tests"] },
        issueRefreshToken: async () => true,
        rotateRefreshToken: true,
        features: {
          registration: { enabled: true },
          revocation: { enabled: true },
          devInteractions: { enabled: true },
          resourceIndicators: {
            enabled: true,
            getResourceServerInfo: () => ({
              scope: "tools files:write",
              accessTokenFormat: "opaque",
              accessTokenTTL: made.lifeSeconds,
            }),
          },
        },
        scopes: ["openid", "offline_access", "tools", "files:write"],
        findAccount: (_, accountId) => ({ accountId, claims: async () => ({ sub: accountId }) }),
      }),
  );
  const isRefresh = (params: unknown) =>
    (params as { grant_type?: string } | undefined)?.grant_type === "refresh_token";
  provider.on("grant.success", ({ oidc }) => void (isRefresh(oidc.params) && made.refreshed.granted++));
  provider.on("grant.error", ({ oidc }) => void (isRefresh(oidc.params) && made.refreshed.refused++));
  provider.use(async (context, next) => {
    if (made.refuses && context.path === "/token") {
      context.status = 400;
      context.body = { error: "invalid_grant", error_description: "the person has changed their mind" };
      return;
    }
    await next();
    if (context.path === "/token/revocation") made.revoked.push(String(context.oidc?.params?.token));
  });
  answer = provider.callback();
  return Object.assign(made, {
    async subjectOf(token: string, resource: string) {
      const found = await provider.AccessToken.find(token);
      return found !== undefined && [found.aud].flat().includes(resource) ? found.accountId : null;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  });
}

/** It warns of what only a test may do. */
function quietly<T>(make: () => T): T {
  const { warn } = console;
  console.warn = () => {};
  try {
    return make();
  } finally {
    console.warn = warn;
  }
}
