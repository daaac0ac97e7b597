import type { Log } from "../../src/lib/log.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

export type Header = [name: string, value: string];

/** The things to request, and the credentials. A fuzz run breaks it and gets a new one. */
export interface World {
  /** By kind. */
  credentials: Record<string, Header[]>;
  /** Values of path parameters that exist, by the parameter's name. */
  ids: Record<string, string[]>;
  /** An invite code that works for anybody. */
  inviteCode: string;
}

/** Credentials of these kinds are refused with 401, whatever the request. */
export const REFUSED = new Set(["none", "garbage", "basic", "revoked", "unsigned", "strangers", "empty"]);

export interface FuzzGround extends AsyncDisposable {
  server: TestServer;
  newWorld(): Promise<World>;
  /** Errors in the log since the last call. */
  faults(): string[];
}

/** The server with a model that answers at once and fails now and then, and with its log kept. */
export async function openFuzzGround(): Promise<FuzzGround> {
  let asked = 0;
  const mock = startMockModelServer({
    record: false,
    answer: () => (++asked % 4 === 0 ? { kind: "status", status: 400 } : { kind: "text", tokens: ["Hello", " you"] }),
  });
  const logged: string[] = [];
  const log = keepErrors((line) => void logged.push(line));
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url };
  const server = await startTestServer(settings, { log });
  return {
    server,
    newWorld: () => newWorld(server),
    faults: () => logged.splice(0),
    async [Symbol.asyncDispose]() {
      await server.stop();
      await mock.stop();
    },
  };
}

/** A log that keeps errors; a model that failed and an instance that is not running are none of the host's. */
function keepErrors(keep: (line: string) => void): Log {
  const error = (fields: { status?: number; err?: unknown }, message = "") => {
    const { err } = fields;
    if (fields.status === 502 || fields.status === 503) return;
    keep(`${message} ${err instanceof Error ? (err.stack ?? err.message) : JSON.stringify(fields)}`);
  };
  const nothing = () => {};
  const log = { error, fatal: error, warn: nothing, info: nothing, debug: nothing, trace: nothing, child: () => log };
  return log as unknown as Log;
}

async function newWorld(server: TestServer): Promise<World> {
  const [owner, stranger] = [await server.signUp(), await server.signUp()];
  const create = async (path: string, body: object, who = owner) => (await who.ask("POST", path, body)).body;
  const { instanceId } = await create("/v1/instances", { name: "one" });
  const other = await create("/v1/instances", { name: "two" });
  const foreign = await create("/v1/instances", { name: "foreign" }, stranger);
  const at = `/v1/instances/${instanceId}`;
  const { agentId } = await create(`${at}/agents`, { name: "Ada" });
  const { runId, messageId, conversationId } = await create(`${at}/agents/${agentId}/messages`, { message: "hello" });
  const second = await create(`${at}/agents/${agentId}/conversations`, { title: "Plans" });
  const secondAgent = await create(`${at}/agents`, { name: "Bo", useDefaults: false });
  await create(`${at}/secrets`, { key: "TOKEN", value: "secret" });
  const [skill, spare] = (await owner.ask("GET", "/v1/skills")).body.data.map(({ name }: { name: string }) => name);
  await create(`${at}/skills`, { name: skill });
  const key = async (body: object) => create("/v1/auth/keys", body);
  const whole = await key({ name: "whole" });
  const revoked = await key({});
  await owner.ask("DELETE", `/v1/auth/keys/${revoked.keyId}`);
  const apiKey = (value: string): Header[] => [["X-API-Key", value]];
  const bearer = (value: string): Header[] => [["Authorization", `Bearer ${value}`]];
  const { code } = server.foundation.invites.create({ uses: 1_000_000, credit: 0n, lifeMs: 3_600_000 });

  return {
    inviteCode: code,
    ids: {
      instanceId: [...Array(8).fill(instanceId), other.instanceId, foreign.instanceId],
      agentId: [agentId, agentId, secondAgent.agentId],
      runId: [runId],
      conversationId: [conversationId, second.conversationId],
      messageId: [messageId],
      keyId: [whole.keyId, revoked.keyId],
      name: [skill, spare ?? skill],
      key: ["TOKEN", "token"],
      file: ["SOUL.md", "notes/today.md", "a%20b.txt", "new.md"],
    },
    credentials: {
      token: bearer(owner.token),
      key: apiKey(whole.key),
      "key as bearer": bearer(whole.key),
      both: [...bearer(owner.token), ...apiKey(whole.key)],
      read: apiKey((await key({ scopes: ["read"] })).key),
      chat: apiKey((await key({ scopes: ["chat"] })).key),
      limited: apiKey((await key({ instanceId })).key),
      stranger: bearer(stranger.token),
      strangers: [...bearer(stranger.token), ...apiKey(whole.key)],
      revoked: apiKey(revoked.key),
      none: [],
      empty: apiKey(""),
      garbage: bearer("a.b.c"),
      basic: [["Authorization", "Basic YTpi"]],
      unsigned: bearer(`${Buffer.from('{"alg":"none"}').toString("base64url")}.${owner.token.split(".")[1]}.`),
    },
  };
}
