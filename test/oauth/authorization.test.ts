import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Returned } from "../../src/mcp/authorization/authorization.ts";
import type { OwnedServer } from "../../src/mcp/authorization/credentials.ts";
import { AuthorizationError } from "../../src/mcp/authorization/failure.ts";
import { type HostilePair, type Lies, startHostilePair, tokens } from "./hostile.ts";
import { visit } from "./person.ts";
import { type ProtectedServer, startProtectedServer } from "./protected-server.ts";
import { type AuthorizationServer, startAuthorizationServer } from "./provider.ts";
import { CALLBACK, openRoom, type Room } from "./room.ts";

let pair: HostilePair;
beforeEach(() => {
  pair = startHostilePair();
});
afterEach(() => pair.stop());

const hostOf = (url: string) => new URL(url).host;
const open = (...urls: string[]) => openRoom([hostOf(pair.url), ...urls.map(hostOf)]);

/** What the browser would bring back for a URL that it was sent to. */
const returned = (authorizationUrl: string, parts: Partial<Returned> = {}): Returned => ({
  state: new URL(authorizationUrl).searchParams.get("state") ?? "",
  code: "code-1",
  iss: pair.issuer,
  ...parts,
});

/** Why an authorization cannot begin. */
async function refusal(room: Room, lies: Lies = {}, url = pair.url): Promise<string> {
  pair.lies = lies;
  const begun = await room.authorization.begin(room.add(url)).catch((error: unknown) => error);
  if (!(begun instanceof AuthorizationError)) throw new Error(`no refusal: ${JSON.stringify(begun)}`);
  return begun.message;
}

async function authorize(room: Room, server: OwnedServer): Promise<void> {
  const { authorizationUrl } = await room.authorization.begin(server);
  expect(await room.authorization.complete(returned(authorizationUrl))).toMatchObject({ outcome: "authorized" });
}

const onDisk = (folder: string): Buffer =>
  Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));

describe("with a real authorization server", () => {
  let provider: AuthorizationServer;
  let server: ProtectedServer;
  beforeAll(async () => {
    provider = await startAuthorizationServer();
    server = startProtectedServer(provider);
  });
  afterAll(async () => {
    server.stop();
    await provider.stop();
  });

  test("a person who consents gives a token that the server takes", async () => {
    await using room = open(server.url, provider.issuer);
    const owned = room.add(server.url);
    const { authorizationUrl } = await room.authorization.begin(owned);
    const asked = new URL(authorizationUrl).searchParams;
    expect(asked.get("code_challenge_method")).toBe("S256");
    expect(asked.get("resource")).toBe(server.url);
    expect(asked.get("redirect_uri")).toBe(CALLBACK);
    const back = new URL(await visit(authorizationUrl, CALLBACK, { name: "ana", consents: true }));
    expect(back.searchParams.get("iss")).toBe(provider.issuer);
    expect(await room.authorization.complete(returnedBy(back))).toEqual({ outcome: "authorized", server: owned });
    const token = await room.credentials.current(owned);
    expect(await provider.subjectOf(token ?? "", server.url)).toBe("ana");
  });

  test("a person who cancels gives nothing, and the state is used up", async () => {
    await using room = open(server.url, provider.issuer);
    const owned = room.add(server.url);
    const { authorizationUrl } = await room.authorization.begin(owned);
    const back = new URL(await visit(authorizationUrl, CALLBACK, { name: "ana", consents: false }));
    expect(back.searchParams.get("error")).toBe("access_denied");
    expect(await room.authorization.complete(returnedBy(back))).toEqual({ outcome: "denied", server: owned });
    expect(await room.authorization.complete(returnedBy(back))).toEqual({ outcome: "unknown" });
    expect(await room.credentials.current(owned)).toBeNull();
    expect(room.failures).toEqual(["the authorization was denied"]);
  });

  test("a code of another authorization is worth nothing", async () => {
    await using room = open(server.url, provider.issuer);
    const [victims, attackers] = [room.add(server.url), room.add(server.url)];
    const victim = await room.authorization.begin(victims);
    const attacker = await room.authorization.begin(attackers);
    const back = new URL(await visit(attacker.authorizationUrl, CALLBACK, { name: "mallory", consents: true }));
    const state = new URL(victim.authorizationUrl).searchParams.get("state") ?? "";
    expect(await room.authorization.complete({ ...returnedBy(back), state })).toMatchObject({ outcome: "failed" });
    expect(await room.credentials.current(victims)).toBeNull();
  });

  test("four who find a token refused at once cause one renewal, and get the same new token", async () => {
    await using room = open(server.url, provider.issuer);
    const owned = room.add(server.url);
    const { authorizationUrl } = await room.authorization.begin(owned);
    const back = new URL(await visit(authorizationUrl, CALLBACK, { name: "ana", consents: true }));
    await room.authorization.complete(returnedBy(back));
    const first = (await room.credentials.current(owned)) ?? "";
    const before = provider.refreshed.granted;
    const given = await Promise.all([1, 2, 3, 4].map(() => room.credentials.other(owned, first)));
    expect(provider.refreshed.granted - before).toBe(1);
    expect(new Set(given).size).toBe(1);
    expect(given[0]).not.toBe(first);
    expect(await provider.subjectOf(given[0] ?? "", server.url)).toBe("ana");
    // Whoever comes later with the old one gets the new one, without a renewal.
    expect(await room.credentials.other(owned, first)).toBe(given[0] ?? "");
    expect(provider.refreshed).toEqual({ granted: before + 1, refused: 0 });
    // The new refresh token was kept: the old one is no longer good.
    expect(await room.credentials.other(owned, given[0] ?? "")).not.toBe(given[0] ?? "");
  });

  test("what is forgotten is revoked", async () => {
    await using room = open(server.url, provider.issuer);
    const owned = room.add(server.url);
    const { authorizationUrl } = await room.authorization.begin(owned);
    await room.authorization.complete(
      returnedBy(new URL(await visit(authorizationUrl, CALLBACK, { name: "ana", consents: true }))),
    );
    const refreshToken = room.credentials.values(owned.instanceId).get(`refresh_token of ${owned.serverId}`) ?? "";
    room.ground.store.transaction(() => room.credentials.forget(owned));
    expect(await room.credentials.current(owned)).toBeNull();
    while (!provider.revoked.includes(refreshToken)) await Bun.sleep(5);
    expect(room.revocationFailures).toEqual([]);
  });

  const returnedBy = ({ searchParams }: URL): Returned => ({
    state: searchParams.get("state") ?? "",
    code: searchParams.get("code") ?? undefined,
    iss: searchParams.get("iss") ?? undefined,
  });
});

describe("an authorization does not begin where", () => {
  const cases: [what: string, lies: (pair: HostilePair) => Lies, says: RegExp][] = [
    [
      "the metadata is that of another resource",
      () => ({ resource: (told) => ({ ...told, resource: "https://other.example/mcp" }) }),
      /another resource/,
    ],
    [
      "the authorization server is at an address that the host may not reach",
      () => ({ resource: (told) => ({ ...told, authorization_servers: ["https://127.0.0.1:1"] }) }),
      /agents may not reach 127.0.0.1:1/,
    ],
    [
      "the challenge names metadata inside of the network",
      () => ({ challenge: 'Bearer resource_metadata="http://169.254.169.254/latest/meta-data"' }),
      /169\.254\.169\.254/,
    ],
    [
      "the metadata is that of another issuer",
      () => ({ metadata: (told) => ({ ...told, issuer: "https://honest.example" }) }),
      /another issuer/,
    ],
    [
      "the authorization server does not say that it supports PKCE",
      () => ({ metadata: ({ code_challenge_methods_supported: _, ...told }) => told }),
      /PKCE/,
    ],
    [
      "it supports only plain PKCE",
      () => ({ metadata: (told) => ({ ...told, code_challenge_methods_supported: ["plain"] }) }),
      /PKCE/,
    ],
    [
      "the page to open is no page",
      () => ({ metadata: (told) => ({ ...told, authorization_endpoint: "javascript:alert(1)" }) }),
      /cannot be read|no URL/,
    ],
    [
      "the page to open is on a host without encryption that the operator does not name",
      () => ({ metadata: (told) => ({ ...told, authorization_endpoint: "http://evil.example/authorize" }) }),
      /not an https one/,
    ],
    [
      "the page to open has a password in its URL",
      () => ({ metadata: (told) => ({ ...told, authorization_endpoint: "https://me:pw@evil.example/" }) }),
      /no URL/,
    ],
    [
      "clients are registered at an address that the host may not reach",
      () => ({ metadata: (told) => ({ ...told, registration_endpoint: "http://127.0.0.1:1/register" }) }),
      /127\.0\.0\.1:1/,
    ],
    [
      "no clients are registered",
      () => ({ metadata: ({ registration_endpoint: _, ...told }) => told }),
      /registers no clients/,
    ],
    [
      "the registration is refused",
      () => ({ register: () => Response.json({ error: "invalid_client_metadata" }, { status: 400 }) }),
      /did not register/,
    ],
    [
      "the registration answers with a redirect",
      ({ issuer }) => ({ register: () => Response.redirect(`${issuer}/elsewhere`, 307) }),
      /redirect/,
    ],
    [
      "the client's id has a line break",
      () => ({ register: (asked) => Response.json({ ...asked, client_id: "a\nb" }, { status: 201 }) }),
      /cannot be used/,
    ],
    ["the metadata does not end", () => ({ metadata: () => endless() }), /larger|longer|more than/],
    [
      "the metadata is too long",
      () => ({ metadata: (told) => ({ ...told, service_documentation: `https://a.example/${"x".repeat(300_000)}` }) }),
      /longer than 256 KiB/,
    ],
    [
      "a list of the metadata is long",
      () => ({ metadata: (told) => ({ ...told, response_types_supported: Array(120_000).fill(0) }) }),
      /more than 5000 values/,
    ],
    [
      "a list of the server's metadata is long",
      () => ({ resource: (told) => ({ ...told, scopes_supported: Array(5_001).fill({}) }) }),
      /more than 5000 values/,
    ],
    ["the metadata is no JSON", () => ({ metadata: () => new Response("<html>") }), /cannot be read/],
    ["there is no metadata", () => ({ metadata: () => new Response(null, { status: 404 }) }), /publishes no metadata/],
  ];
  test.each(cases)("%s", async (_, lies, says) => {
    await using room = open();
    expect(await refusal(room, lies(pair))).toMatch(says);
    expect(room.ground.store.sqlite.query("SELECT * FROM mcp_authorizations").all()).toEqual([]);
  });

  test("no clients are registered, unless the host can be known by a URL", async () => {
    pair.lies = {
      metadata: ({ registration_endpoint: _, ...told }) => ({ ...told, client_id_metadata_document_supported: true }),
    };
    await using local = open();
    expect(await refusal(local, pair.lies)).toMatch(/registers no clients/);
    await using room = openRoom([hostOf(pair.url)], "https://roost.example");
    const { authorizationUrl } = await room.authorization.begin(room.add(pair.url));
    const asked = new URL(authorizationUrl).searchParams;
    expect(asked.get("client_id")).toBe("https://roost.example/v1/oauth/client");
    expect(asked.get("redirect_uri")).toBe("https://roost.example/v1/oauth/callback");
  });

  test("the host may reach nothing", async () => {
    await using room = openRoom([]);
    expect(await refusal(room)).toMatch(/ROOST_EGRESS/);
    expect(pair.asked).toEqual([]);
  });
});

const endless = (): Response =>
  new Response(
    new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(256 * 1024).fill(32));
      },
    }),
  );

describe("what comes back", () => {
  test("is believed once", async () => {
    await using room = open();
    const { authorizationUrl } = await room.authorization.begin(room.add(pair.url));
    const back = returned(authorizationUrl);
    const endings = await Promise.all([room.authorization.complete(back), room.authorization.complete(back)]);
    expect(endings.map(({ outcome }) => outcome).sort()).toEqual(["authorized", "unknown"]);
    expect(await room.authorization.complete(back)).toEqual({ outcome: "unknown" });
    expect(pair.forms).toHaveLength(1);
  });

  test("is sent on with the verifier of its challenge, for the server alone", async () => {
    await using room = open();
    const { authorizationUrl } = await room.authorization.begin(room.add(pair.url));
    await room.authorization.complete(returned(authorizationUrl));
    const [form] = pair.forms;
    const hash = new Bun.CryptoHasher("sha256").update(form?.get("code_verifier") ?? "").digest("base64url");
    expect(hash).toBe(new URL(authorizationUrl).searchParams.get("code_challenge") ?? "");
    expect(Object.fromEntries(form ?? [])).toMatchObject({
      ...{ grant_type: "authorization_code", code: "code-1", client_id: "client-1" },
      ...{ redirect_uri: CALLBACK, resource: pair.url },
    });
  });

  test.each([
    ["of another issuer", "https://honest.example"],
    ["of the issuer with a slash", "slash"],
    ["of no issuer, though the server names it always", undefined],
  ])("%s is never sent on", async (_, iss) => {
    await using room = open();
    const { authorizationUrl } = await room.authorization.begin(room.add(pair.url));
    const back = returned(authorizationUrl, { iss: iss === "slash" ? `${pair.issuer}/` : iss });
    expect(await room.authorization.complete(back)).toMatchObject({ outcome: "failed" });
    expect(pair.forms).toEqual([]);
    expect(room.failures).toEqual([expect.stringMatching(/another authorization server/)]);
    // It was a state all the same, and a state counts once.
    expect(await room.authorization.complete(returned(authorizationUrl))).toEqual({ outcome: "unknown" });
  });

  test("a denial of another issuer is not taken for one", async () => {
    await using room = open();
    const { authorizationUrl } = await room.authorization.begin(room.add(pair.url));
    const back = returned(authorizationUrl, { iss: "https://evil.example", code: undefined });
    expect(await room.authorization.complete(back)).toMatchObject({ outcome: "failed" });
  });

  test("too late counts no more, and is removed", async () => {
    await using room = open();
    const { authorizationUrl, expiresAt } = await room.authorization.begin(room.add(pair.url));
    room.later(expiresAt - room.ground.clock.now() + 1);
    expect(room.authorization.prune(10)).toBe(false);
    expect(room.ground.store.sqlite.query("SELECT * FROM mcp_authorizations").all()).toEqual([]);
    expect(await room.authorization.complete(returned(authorizationUrl))).toEqual({ outcome: "unknown" });
    const later = await room.authorization.begin(room.add(pair.url));
    room.later(10 * 60 * 1000);
    expect(await room.authorization.complete(returned(later.authorizationUrl))).toEqual({ outcome: "unknown" });
    expect(pair.forms).toEqual([]);
  });

  test("of an earlier beginning for the same server counts no more", async () => {
    await using room = open();
    const owned = room.add(pair.url);
    const first = await room.authorization.begin(owned);
    const second = await room.authorization.begin(owned);
    expect(await room.authorization.complete(returned(first.authorizationUrl))).toEqual({ outcome: "unknown" });
    expect(await room.authorization.complete(returned(second.authorizationUrl))).toMatchObject({
      outcome: "authorized",
    });
  });

  test("of a server that was removed, or has another URL now, counts no more", async () => {
    await using room = open();
    const [removed, moved] = [room.add(pair.url), room.add(pair.url)];
    const [one, other] = [await room.authorization.begin(removed), await room.authorization.begin(moved)];
    room.remove(removed);
    room.move(moved, `${pair.url}/other`);
    expect(await room.authorization.complete(returned(one.authorizationUrl))).toEqual({ outcome: "unknown" });
    expect(await room.authorization.complete(returned(other.authorizationUrl))).toEqual({ outcome: "unknown" });
  });

  test("while the server is removed gives no credentials", async () => {
    await using room = open();
    const owned = room.add(pair.url);
    const { authorizationUrl } = await room.authorization.begin(owned);
    pair.lies.token = () => {
      room.remove(owned);
      return tokens();
    };
    expect(await room.authorization.complete(returned(authorizationUrl))).toMatchObject({ outcome: "failed" });
    expect(room.ground.store.sqlite.query("SELECT * FROM mcp_credentials").all()).toEqual([]);
  });

  test.each<[string, (pair: HostilePair) => Response, RegExp]>([
    ["redirects", ({ issuer }) => Response.redirect(`${issuer}/mcp`, 307), /redirect/],
    ["refuses the code", () => Response.json({ error: "invalid_grant" }, { status: 400 }), /refused the code/],
    ["fails", () => new Response("code-1 was not good", { status: 500 }), /cannot be read/],
    ["never ends", endless, /larger|longer|more than/],
    ["gives a token with a line break", () => tokens({ access_token: "a\r\nX: y" }), /cannot be used/],
    ["gives a token that is too long", () => tokens({ access_token: "a".repeat(10_000) }), /cannot be used/],
    ["gives a token of another type", () => tokens({ token_type: "mac" }), /no bearer token/],
    ["gives no token", () => Response.json({}), /cannot be read/],
  ])("is worth nothing if the token endpoint %s", async (_, answer, says) => {
    await using room = open();
    const owned = room.add(pair.url);
    const { authorizationUrl } = await room.authorization.begin(owned);
    pair.lies.token = () => answer(pair);
    const ending = await room.authorization.complete(returned(authorizationUrl));
    expect(ending).toMatchObject({ outcome: "failed", reason: expect.stringMatching(says) });
    // Nothing of what a stranger wrote, nor of the code.
    expect(JSON.stringify(ending)).not.toContain("code-1");
    expect(await room.credentials.current(owned)).toBeNull();
  });
});

describe("credentials", () => {
  test("are on no disk in the clear, nor is a state", async () => {
    await using room = open();
    const owned = room.add(pair.url);
    const { authorizationUrl } = await room.authorization.begin(owned);
    const state = new URL(authorizationUrl).searchParams.get("state") ?? "none";
    expect(onDisk(room.ground.dataDir).includes(state)).toBe(false);
    await room.authorization.complete(returned(authorizationUrl));
    const bytes = onDisk(room.ground.dataDir);
    expect(bytes.includes(owned.serverId)).toBe(true);
    for (const secret of ["access-1", "refresh-1", pair.forms[0]?.get("code_verifier") ?? "none"]) {
      expect(bytes.includes(secret)).toBe(false);
    }
  });

  test("open for no other server and no other issuer", async () => {
    await using room = open();
    const [mine, others] = [room.add(pair.url), room.add(pair.url)];
    await authorize(room, mine);
    const { sqlite } = room.ground.store;
    const copy = "INSERT INTO mcp_credentials SELECT ?, issuer, data_key_id, sealed, updated_at FROM mcp_credentials";
    room.ground.store.transaction(() => sqlite.run(copy, [others.serverId]));
    expect(await room.credentials.current(others)).toBeNull();
    room.ground.store.transaction(() => sqlite.run("UPDATE mcp_credentials SET issuer = 'https://evil.example'"));
    expect(await room.credentials.current(mine)).toBeNull();
  });

  test("are renewed shortly before their end", async () => {
    await using room = open();
    const owned = room.add(pair.url);
    await authorize(room, owned);
    pair.lies.token = () => tokens({ access_token: "access-2", refresh_token: "refresh-2" });
    expect(await room.credentials.current(owned)).toBe("access-1");
    room.later(3_600_000 - 20_000);
    expect(await room.credentials.current(owned)).toBe("access-2");
    expect(Object.fromEntries(pair.forms[1] ?? [])).toEqual({
      ...{ grant_type: "refresh_token", refresh_token: "refresh-1", client_id: "client-1", resource: pair.url },
    });
    const { serverId } = owned;
    expect(Object.fromEntries(room.credentials.values(owned.instanceId))).toEqual({
      [`token of ${serverId}`]: "access-2",
      [`earlier_token of ${serverId}`]: "access-1",
      [`refresh_token of ${serverId}`]: "refresh-2",
    });
  });

  const failing = (status: number, error: string) => () => Response.json({ error }, { status });

  test.each([
    ["fails", () => new Response(null, { status: 503 })],
    ["says that it is out of order", failing(503, "Service Unavailable")],
    ["has too many requests", failing(429, "too_many_requests")],
    ["has too many requests, and says what it says to a bad token", failing(429, "invalid_grant")],
    ["has an error of its own", failing(400, "server_error")],
    ["lets nobody through for now", failing(403, "Forbidden")],
  ])("stay what they are while the authorization server %s", async (_, answer) => {
    await using room = open();
    const owned = room.add(pair.url);
    await authorize(room, owned);
    pair.lies.token = answer;
    room.later(3_600_000 - 20_000);
    expect(await room.credentials.current(owned)).toBe("access-1");
    room.later(20_000);
    await expect(room.credentials.current(owned)).rejects.toThrow(AuthorizationError);
    pair.lies.token = () => tokens({ access_token: "access-2" });
    expect(await room.credentials.current(owned)).toBe("access-2");
  });

  test.each([
    ["in the words of OAuth", failing(400, "invalid_grant")],
    ["in those words with another status", failing(403, "invalid_grant")],
    ["in words of the server's own", failing(400, "bad_refresh_token")],
    ["with a status that says nothing of it", failing(200, "bad_refresh_token")],
  ])("are forgotten once their renewal is refused %s", async (_, answer) => {
    await using room = open();
    const owned = room.add(pair.url);
    await authorize(room, owned);
    pair.lies.token = answer;
    const tries = [1, 2, 3, 4].map(() => room.credentials.other(owned, "access-1"));
    const refusals = await Promise.allSettled(tries);
    expect(new Set(refusals.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    expect(pair.forms).toHaveLength(2);
    // Whoever asks later hears the same, and nobody is asked again until a person has authorized it anew.
    await expect(room.credentials.current(owned)).rejects.toThrow("refused to renew the access");
    expect(pair.forms).toHaveLength(2);
    // What was given may still come back in an answer.
    expect([...room.credentials.values(owned.instanceId).values()]).toEqual(["access-1", "refresh-1"]);
    pair.lies = {};
    await authorize(room, owned);
    expect(await room.credentials.current(owned)).toBe("access-1");
  });

  test("of a new authorization are not replaced by an older renewal", async () => {
    await using room = open();
    const owned = room.add(pair.url);
    await authorize(room, owned);
    const { promise, resolve } = Promise.withResolvers<Response>();
    const asked = Promise.withResolvers<void>();
    pair.lies.token = () => {
      asked.resolve();
      return promise;
    };
    const renewal = room.credentials.other(owned, "access-1");
    await asked.promise;
    pair.lies.token = () => tokens({ access_token: "access-9" });
    await authorize(room, owned);
    resolve(tokens({ access_token: "access-2" }));
    expect(await renewal).toBe("access-9");
    expect(await room.credentials.current(owned)).toBe("access-9");
  });

  test("go with their server, and with its URL", async () => {
    await using room = open();
    const [removed, moved] = [room.add(pair.url), room.add(pair.url)];
    await authorize(room, removed);
    await authorize(room, moved);
    room.remove(removed);
    room.move(moved, `${pair.url}/other`);
    expect(room.ground.store.sqlite.query("SELECT * FROM mcp_credentials").all()).toEqual([]);
    expect(room.credentials.values(moved.instanceId).size).toBe(0);
  });
});
