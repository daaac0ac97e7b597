import { expect, test } from "bun:test";
import { pino } from "pino";
import { createMcp } from "../../src/app/mcp-servers.ts";
import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { newId } from "../../src/lib/id.ts";
import { openMasterKey } from "../../src/secrets/master-key.ts";
import { openGround } from "../support/route-harness.ts";
import { startHostilePair } from "./hostile.ts";
import { PUBLIC_URL } from "./room.ts";

test("who has consented is told so, also where the account's MCP clients are all in use", async () => {
  const pair = startHostilePair();
  await using ground = openGround();
  const egress = createEgress({ policy: createEgressPolicy([new URL(pair.url).host]) });
  const account = ground.account();
  const { instanceId } = ground.instances.create(account, "one");
  const { servers, authorization, connections } = createMcp({
    ...ground,
    log: pino({ enabled: false }),
    web: {
      // Servers that never answer.
      egress: { ...egress, open: () => new Promise(() => {}) },
      broker: {
        ...{ declares: () => false, fill: async () => [], fillFor: async () => [] },
        ...{ redact: async (_, text) => text, redactor: async () => async (text) => text },
      },
    },
    rules: { forget() {} },
    masterKey: openMasterKey(ground.dataDir),
    publicUrl: () => PUBLIC_URL,
    tellAgents() {},
  });
  const address = { serverId: newId("mcp"), instanceId, name: "docs", url: pair.url, headers: {} };
  const waits = { status: "needs_authorization" as const, reason: "authorize it" };
  const server = ground.store.transaction(() => servers.create(account.accountId, address, waits));
  const { authorizationUrl } = await authorization.begin({ ...server, accountId: account.accountId });
  const leaving = new AbortController();
  const busy = Array.from({ length: 80 }, () => servers.reconnect(server, leaving.signal).catch(() => {}));
  expect(await servers.reconnect(server, leaving.signal).catch(({ code }) => code)).toBe("rate_limited");
  const state = new URL(authorizationUrl).searchParams.get("state") ?? "";
  const returned = { state, code: "code-1", iss: pair.issuer };
  expect(await authorization.complete(returned)).toMatchObject({ outcome: "authorized" });
  leaving.abort();
  await Promise.all(busy);
  await connections.closeAll();
  pair.stop();
});
