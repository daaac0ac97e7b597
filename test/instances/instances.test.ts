import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { NETWORKS } from "../../src/chain/networks.ts";
import { DAY, handClock, MINUTE } from "../lib/hand-clock.ts";
import { type Person, startTestServer, type TestServer } from "../support/test-server.ts";

const clock = handClock();
let server: TestServer;
let owner: Person;
let stranger: Person;

beforeAll(async () => {
  server = await startTestServer({}, { clock });
});
beforeEach(async () => {
  owner = await server.signUp();
  stranger = await server.signUp();
});
afterAll(() => server.stop());

const create = (who = owner, name = "one") => who.ask("POST", "/v1/instances", { name });
const made = async (who = owner, name = "one"): Promise<string> => (await create(who, name)).body.instanceId;
const folderOf = (instanceId: string) => join(server.dataDir, "instances", instanceId);
const UNKNOWN = `inst_${"0".repeat(32)}`;

describe("POST /v1/instances", () => {
  test("creates a running instance: 201 with the whole record", async () => {
    const { status, body } = await create(owner, "  My first \u{1F600}  ");
    expect(status).toBe(201);
    const now = new Date(clock.now()).toISOString();
    expect(body).toEqual({
      instanceId: expect.stringMatching(/^inst_[0-9a-f]{32}$/),
      name: "My first \u{1F600}",
      status: "running",
      statusReason: null,
      createdAt: now,
      startedAt: now,
      stoppedAt: null,
      agentCount: 0,
      modelLimits: { tokensPerDay: null, tokensPerMonth: null, costPerDay: null, costPerMonth: null },
      billing: { pricePerHour: "0.030000", accrued: "0.000000", currency: "USDC" },
    });
    expect((await owner.ask("GET", `/v1/instances/${body.instanceId}`)).body).toEqual(body);
    expect(existsSync(join(folderOf(body.instanceId), "agents"))).toBe(true);
  });

  test.each([["\u{1F600}".repeat(100)], ["x"], ["a".repeat(100)]])("accepts the name %p", async (name) => {
    expect((await create(owner, name)).body.name).toBe(name);
  });

  test.each([[""], ["   "], ["a".repeat(101)], ["\u{1F600}".repeat(101)], [7], [null], [["a"]]])(
    "refuses the name %p",
    async (name) => {
      const { status, body } = await owner.ask("POST", "/v1/instances", { name });
      expect([status, body.error.message]).toEqual([400, "name: expected 1 to 100 characters"]);
    },
  );

  test.each(["a\u0000b", "a\nb", "a\tb", "\ud800"])("says what is wrong with the name %j", async (name) => {
    const { status, body } = await owner.ask("POST", "/v1/instances", { name });
    expect([status, body.error.message]).toEqual([
      400,
      "name: expected 1 to 100 characters on one line, without control characters",
    ]);
  });
});

describe("an account under the launch minimum", () => {
  let poor: Person;
  beforeEach(async () => {
    poor = await server.signUp(undefined, "0.499999");
  });

  test("gets 402 with what to pay, with an option for each network", async () => {
    const { status, body } = await create(poor);
    expect(status).toBe(402);
    expect(Object.keys(body).sort()).toEqual(["error", "x402"]);
    expect(body.error).toMatchObject({ code: "payment_required", status: 402 });
    const { x402 } = body;
    const asset = (network: keyof typeof NETWORKS) => ({
      chainId: NETWORKS[network].chainId,
      asset: NETWORKS[network].asset,
    });
    expect(x402).toEqual({
      amount: expect.stringMatching(/^1\.00\d{4}$/),
      currency: "USDC",
      network: "base",
      ...asset("base"),
      recipient: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      invoiceId: expect.stringMatching(/^inv_[0-9a-f]{32}$/),
      expiresAt: new Date(clock.now() + DAY).toISOString(),
      options: (["base", "ethereum", "polygon"] as const).map((network) => ({
        network,
        ...asset(network),
        recipient: x402.recipient,
        amount: x402.amount,
        currency: "USDC",
      })),
    });
    expect(x402.amount).not.toBe("1.000000");
    expect((await poor.ask("GET", "/v1/instances")).body.data).toEqual([]);
  });

  test("gets the same open invoice each time, in the database too, for starting and creating", async () => {
    const [first, second] = [await create(poor), await create(poor)];
    expect(second.body.x402).toEqual(first.body.x402);
    const { invoiceId, amount } = first.body.x402;
    const { sqlite } = server.foundation.store;
    const rows = sqlite.query("SELECT status, amount FROM invoices WHERE invoice_id = ?").all(invoiceId);
    expect(rows).toEqual([{ status: "open", amount: Number(amount.replace(".", "")) }]);
  });

  test("gets another invoice once the first has expired", async () => {
    const first = (await create(poor)).body.x402;
    clock.advance(DAY + 1);
    poor.token = await tokenOf(poor);
    const later = await server.ask("POST", "/v1/instances", { token: poor.token, body: { name: "one" } });
    expect(later.body.x402.invoiceId).not.toBe(first.invoiceId);
    expect(later.body.x402.amount).not.toBe(first.amount);
  });

  test("gets an amount of its own that no other open invoice has", async () => {
    const others = await Promise.all(Array.from({ length: 5 }, () => server.signUp(undefined, "0.00")));
    const amounts = await Promise.all(others.map(async (person) => (await create(person)).body.x402.amount));
    expect(new Set(amounts).size).toBe(others.length);
  });

  test("may create an instance at exactly the minimum", async () => {
    const enough = await server.signUp(undefined, "0.50");
    expect((await create(enough)).status).toBe(201);
  });

  test("may stop a running instance, but not start it again: 402; a running one needs no minimum", async () => {
    const person = await server.signUp(undefined, "0.50");
    const path = `/v1/instances/${await made(person)}`;
    server.foundation.ledger.post({
      type: "reversal",
      accountId: person.accountId,
      amount: -1n,
      against: "grants",
    });
    expect((await person.ask("POST", `${path}/start`)).status).toBe(200);
    await person.ask("POST", `${path}/stop`);
    const refused = await person.ask("POST", `${path}/start`);
    expect([refused.status, typeof refused.body.x402.invoiceId]).toEqual([402, "string"]);
    expect((await person.ask("GET", path)).body.status).toBe("stopped");
    const again = await person.ask("POST", `${path}/start`);
    expect(again.body.x402).toEqual(refused.body.x402);
  });
});

async function tokenOf(person: Person): Promise<string> {
  const link = server.foundation.links.create(person.email, 0n);
  return (await server.ask("POST", "/v1/auth/redeem-link", { body: { link } })).body.token;
}

describe("a host with other settings", () => {
  let other: TestServer | undefined;
  afterEach(async () => {
    await other?.stop();
    other = undefined;
  });

  test("that charges nothing starts instances with an empty balance", async () => {
    other = await startTestServer({ ROOST_PRICE_PER_HOUR: "0", ROOST_MINIMUM_LAUNCH_BALANCE: "0" });
    const person = await other.signUp(undefined, "0.00");
    const { status, body } = await create(person);
    expect([status, body.billing.pricePerHour]).toEqual([201, "0.000000"]);
    await person.ask("POST", `/v1/instances/${body.instanceId}/stop`);
    expect((await person.ask("POST", `/v1/instances/${body.instanceId}/start`)).status).toBe(200);
  });

  test("asks for what is missing if that is more than the minimum top-up, on its own networks", async () => {
    other = await startTestServer({
      ROOST_MINIMUM_LAUNCH_BALANCE: "7.505",
      ROOST_NETWORKS: "polygon,base",
      ROOST_WALLET: `0x${"ab".repeat(20)}`,
    });
    const { x402 } = (await create(await other.signUp(undefined, "0.10"))).body;
    expect(x402.amount).toMatch(/^7\.41\d{4}$/);
    expect([x402.network, x402.recipient]).toEqual(["polygon", `0x${"ab".repeat(20)}`]);
    expect(x402.options.map(({ network }: { network: string }) => network)).toEqual(["polygon", "base"]);
  });
});

describe("GET and PATCH /v1/instances/:id", () => {
  test("show and rename the caller's own; for a stranger or an unknown one 404", async () => {
    const path = `/v1/instances/${await made()}`;
    const { status, body } = await owner.ask("PATCH", path, { name: " two " });
    expect([status, body.name]).toEqual([200, "two"]);
    expect((await owner.ask("GET", path)).body).toEqual(body);
    for (const [who, where] of [
      [stranger, path],
      [owner, `/v1/instances/${UNKNOWN}`],
    ] as const) {
      const got = await who.ask("GET", where);
      const patched = await who.ask("PATCH", where, { name: "mine" });
      expect([got.status, patched.status]).toEqual([404, 404]);
      expect(got.body.error.message).toBe("instance not found");
    }
    expect((await owner.ask("GET", path)).body.name).toBe("two");
  });

  test("refuse an empty name", async () => {
    const path = `/v1/instances/${await made()}`;
    for (const body of [{}, { name: "" }, { name: null }]) {
      expect((await owner.ask("PATCH", path, body)).status).toBe(400);
    }
  });
});

describe("stop and start", () => {
  test("stop and start an instance, with their times; a second one changes nothing", async () => {
    const path = `/v1/instances/${await made()}`;
    const started = new Date(clock.now()).toISOString();
    clock.advance(MINUTE);
    const stopped = await owner.ask("POST", `${path}/stop`);
    const stoppedAt = new Date(clock.now()).toISOString();
    expect(stopped.status).toBe(200);
    expect(stopped.body).toMatchObject({ status: "stopped", statusReason: null, startedAt: started, stoppedAt });
    clock.advance(MINUTE);
    expect((await owner.ask("POST", `${path}/stop`)).body).toEqual(stopped.body);
    const running = await owner.ask("POST", `${path}/start`);
    const startedAt = new Date(clock.now()).toISOString();
    expect(running.body).toMatchObject({ status: "running", statusReason: null, startedAt });
    clock.advance(MINUTE);
    expect((await owner.ask("POST", `${path}/start`)).body).toMatchObject({ status: "running", startedAt });
  });

  test("at once leave the status that the last one returned", async () => {
    const path = `/v1/instances/${await made()}`;
    const answers = await Promise.all(
      ["stop", "start", "stop", "start"].map((what) => owner.ask("POST", `${path}/${what}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(["running", "stopped"]).toContain((await owner.ask("GET", path)).body.status);
    await owner.ask("POST", `${path}/stop`);
    expect((await owner.ask("GET", path)).body.status).toBe("stopped");
  });

  test("are 404 for a stranger", async () => {
    const path = `/v1/instances/${await made()}`;
    for (const what of ["stop", "start"]) expect((await stranger.ask("POST", `${path}/${what}`)).status).toBe(404);
    expect((await owner.ask("GET", path)).body.status).toBe("running");
  });

  test("do not affect work on a stopped instance's agents, files and secrets", async () => {
    const path = `/v1/instances/${await made()}`;
    await owner.ask("POST", `${path}/stop`);
    const { status, body } = await owner.ask("POST", `${path}/agents`, { name: "Ada" });
    expect(status).toBe(201);
    const agent = `${path}/agents/${body.agentId}`;
    expect((await owner.ask("PATCH", agent, { files: { "a.md": "a" } })).status).toBe(200);
    expect((await owner.ask("PUT", `${agent}/files/b.md`, "b")).status).toBe(201);
    expect((await owner.ask("POST", `${path}/secrets`, { key: "A", value: "a" })).status).toBe(201);
    expect((await owner.ask("GET", path)).body.agentCount).toBe(1);
  });

  test("are remembered after a restart", async () => {
    const [up, down] = [await made(), await made()];
    await owner.ask("POST", `/v1/instances/${down}/stop`);
    await server.restart();
    expect((await owner.ask("GET", `/v1/instances/${up}`)).body.status).toBe("running");
    expect((await owner.ask("GET", `/v1/instances/${down}`)).body.status).toBe("stopped");
  });
});

describe("DELETE /v1/instances/:id", () => {
  test("removes the record, the agents, the secrets and the folder; a second one is 404", async () => {
    const instanceId = await made();
    const path = `/v1/instances/${instanceId}`;
    const { body } = await owner.ask("POST", `${path}/agents`, { name: "Ada" });
    await owner.ask("POST", `${path}/secrets`, { key: "A", value: "a" });
    const gone = await owner.ask("DELETE", path);
    expect([gone.status, gone.body]).toEqual([200, { instanceId, deleted: true }]);
    for (const where of [path, `${path}/agents`, `${path}/agents/${body.agentId}`, `${path}/secrets`]) {
      expect((await owner.ask("GET", where)).status).toBe(404);
    }
    expect((await owner.ask("DELETE", path)).status).toBe(404);
    await server.app.settled();
    expect(existsSync(folderOf(instanceId))).toBe(false);
    const { sqlite } = server.foundation.store;
    for (const table of ["agents", "secrets", "installed_skills", "workspace_changes", "runs"]) {
      expect(sqlite.query(`SELECT * FROM ${table} WHERE instance_id = ?`).all(instanceId)).toEqual([]);
    }
  });

  test("is 404 for a stranger", async () => {
    const path = `/v1/instances/${await made()}`;
    expect((await stranger.ask("DELETE", path)).status).toBe(404);
    expect((await owner.ask("GET", path)).status).toBe(200);
  });

  test("works on a stopped one", async () => {
    const path = `/v1/instances/${await made()}`;
    await owner.ask("POST", `${path}/stop`);
    expect((await owner.ask("DELETE", path)).status).toBe(200);
  });

  test("interrupted by a crash before the folder was removed is finished at the next start", async () => {
    const [gone, kept] = [await made(), await made()];
    const { store } = server.foundation;
    store.transaction(() => store.sqlite.run("DELETE FROM instances WHERE instance_id = ?", [gone]));
    expect(existsSync(folderOf(gone))).toBe(true);
    await server.restart();
    await server.app.settled();
    const left = readdirSync(join(server.dataDir, "instances"));
    expect([left.includes(gone), left.includes(kept)]).toEqual([false, true]);
  });
});

describe("GET /v1/instances", () => {
  test("filters by status", async () => {
    const [first, second, third] = [await made(owner, "1"), await made(owner, "2"), await made(owner, "3")];
    await owner.ask("POST", `/v1/instances/${second}/stop`);
    const idsOf = async (query: string) =>
      (await owner.ask("GET", `/v1/instances${query}`)).body.data.map((row: { instanceId: string }) => row.instanceId);
    expect(await idsOf("")).toEqual([third, second, first]);
    expect(await idsOf("?status=running")).toEqual([third, first]);
    expect(await idsOf("?status=stopped")).toEqual([second]);
    expect(await idsOf("?status=error")).toEqual([]);
  });

  test.each(["", "Running", "paused", "running,stopped"])("refuses the status %p", async (status) => {
    const answer = await owner.ask("GET", `/v1/instances?status=${status}`);
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toStartWith("status: expected one of provisioning, running");
  });

  test("shows no instances of others", async () => {
    await made();
    expect((await stranger.ask("GET", "/v1/instances")).body).toEqual({ data: [], hasMore: false, nextCursor: null });
  });
});
