import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { type Asking, startAsking } from "../approvals/asking.ts";
import { type Era, type McpService, startMcpService, text } from "./mcp-service.ts";

const echo = {
  name: "echo",
  description: "Says it again.",
  input: z.object({ said: z.string() }),
  run: ({ said }: Record<string, unknown>) => text(`You said ${said}.`),
};

describe.each(["2025", "2026"] as Era[])("a server of %s", (era) => {
  let service: McpService;
  let it: Asking;
  let at: string;
  beforeAll(async () => {
    service = startMcpService(era, echo);
    it = await startAsking(undefined, {}, { ROOST_EGRESS: `public,${service.host}` });
    at = `/v1/instances/${it.instance}/mcp-servers`;
  });
  afterAll(async () => {
    await it.stop();
    await service.stop();
  });
  afterEach(async () => {
    for (const { serverId } of (await it.person.ask("GET", at)).body.data) {
      await it.person.ask("DELETE", `${at}/${serverId}`);
    }
    await service.offer(echo);
    service.intercept = () => undefined;
    service.calls.length = 0;
    await it.begin();
  });

  test("is shown again for a repeated request, also where its answer is too large to be stored", async () => {
    const tools = Array.from({ length: 20 }, (_, n) => ({ name: `tool_${n}`, description: "x".repeat(4_000) }));
    await service.offer(...tools);
    const headers = { "Idempotency-Key": crypto.randomUUID() };
    const add = () => it.person.ask("POST", at, { name: "docs", url: service.url }, headers);
    const [first, again] = [await add(), await add()];
    expect([first.status, again.status, again.headers.get("idempotent-replayed")]).toEqual([201, 201, "true"]);
    expect(again.body).toEqual(first.body);
  });

  test("is listed when it is added, and its tools are approved as they stand", async () => {
    const { status, body } = await it.person.ask("POST", at, { name: "docs", url: service.url });
    expect([status, body]).toEqual([
      201,
      {
        serverId: expect.stringMatching(/^mcp_/),
        instanceId: it.instance,
        name: "docs",
        url: service.url,
        headers: {},
        status: "ready",
        statusReason: null,
        protocolVersion: era === "2026" ? "2026-07-28" : "2025-11-25",
        tools: [
          {
            name: "echo",
            description: "Says it again.",
            inputSchema: expect.objectContaining({ type: "object", required: ["said"] }),
            state: "approved",
          },
        ],
        lastAuthorization: null,
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
      },
    ]);
    expect((await it.person.ask("GET", `${at}/${body.serverId}`)).body).toEqual(body);
    expect((await it.person.ask("GET", at)).body.data).toEqual([body]);
    expect((await it.person.ask("DELETE", `${at}/${body.serverId}`)).body).toEqual({
      serverId: body.serverId,
      deleted: true,
    });
    expect((await it.person.ask("GET", `${at}/${body.serverId}`)).status).toBe(404);
  });

  test("has tools that are new, changed or gone until its owner approves them", async () => {
    await service.offer(echo, { name: "old" }, { name: "left" });
    const { serverId } = (await it.person.ask("POST", at, { name: "docs", url: service.url })).body;
    await service.offer({ ...echo, description: "Says it twice." }, { name: "left" }, { name: "young" });
    const states = ({ body }: { body: { tools: { name: string; state: string }[] } }) =>
      Object.fromEntries(body.tools.map(({ name, state }) => [name, state]));
    const refreshed = await it.person.ask("POST", `${at}/${serverId}/refresh`);
    expect(refreshed.body.status).toBe("changed");
    expect(states(refreshed)).toEqual({ echo: "changed", left: "approved", young: "new", old: "gone" });
    const approve = (body: object) => it.person.ask("POST", `${at}/${serverId}/approve`, body);
    expect((await approve({ tools: ["nothing"] })).status).toBe(404);
    expect((await approve({ updatedAt: "2026-01-01T00:00:00.000Z" })).status).toBe(409);
    const some = await approve({ tools: ["young"], updatedAt: refreshed.body.updatedAt });
    expect(states(some)).toEqual({ echo: "changed", left: "approved", young: "approved", old: "gone" });
    expect(some.body.status).toBe("changed");
    const all = await approve({});
    expect([all.body.status, states(all)]).toEqual([
      "ready",
      { echo: "approved", left: "approved", young: "approved" },
    ]);
  });

  test("whose address is changed while another change of it is looked at keeps that, and the other is refused", async () => {
    const { serverId } = (await it.person.ask("POST", at, { name: "docs", url: service.url })).body;
    const arrived = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<undefined>();
    service.intercept = (_, request) => {
      if (!request.headers.has("x-key")) return undefined;
      arrived.resolve();
      return goOn.promise;
    };
    const change = (body: object) => it.person.ask("PATCH", `${at}/${serverId}`, body);
    const late = change({ headers: { "X-Key": "a" } });
    await arrived.promise;
    const url = `${service.url}/moved`;
    expect(await change({ url })).toMatchObject({ status: 200, body: { url, headers: {} } });
    goOn.resolve(undefined);
    expect(await late).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
    expect((await it.person.ask("GET", `${at}/${serverId}`)).body).toMatchObject({ url, headers: {} });
    expect(await change({ headers: { "X-Key": "a" } })).toMatchObject({ status: 200, body: { url } });
  });

  test("whose headers are changed is as it was seen with the new ones, whatever becomes of a look with the old ones", async () => {
    const headers = { "X-Key": "old" };
    const { serverId } = (await it.person.ask("POST", at, { name: "docs", url: service.url, headers })).body;
    const arrived = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    service.intercept = async (_, request) => {
      if (request.headers.get("x-key") !== "old") return undefined;
      arrived.resolve();
      await goOn.promise;
      return new Response(null, { status: 503 });
    };
    const refreshed = it.person.ask("POST", `${at}/${serverId}/refresh`);
    await arrived.promise;
    const changed = await it.person.ask("PATCH", `${at}/${serverId}`, { headers: { "X-Key": "new" } });
    expect(changed).toMatchObject({ status: 200, body: { status: "ready" } });
    goOn.resolve();
    expect((await refreshed).body).toEqual(changed.body);
    expect((await it.person.ask("GET", `${at}/${serverId}`)).body).toEqual(changed.body);
  });

  test("that is no such server is refused where it cannot be one, and told where it may", async () => {
    const post = (body: object) => it.person.ask("POST", at, { name: "docs", url: service.url, ...body });
    const refused = [
      { name: "Docs" },
      { name: "-docs" },
      { url: "http://example.com/mcp" },
      { url: "https://ada:secret@example.com/mcp" },
      { url: "ftp://example.com" },
      { headers: { Host: "example.com" } },
      { headers: { "Mcp-Session-Id": "1" } },
      { headers: { "a b": "c" } },
      { headers: { A: "1", a: "2" } },
      { headers: { Authorization: "Bearer {{secret:}}" } },
      { headers: { Authorization: "two\nlines" } },
    ];
    for (const body of refused) expect([body, (await post(body)).status]).toEqual([body, 400]);
    service.intercept = () => new Response("<html>Welcome</html>", { headers: { "Content-Type": "text/html" } });
    expect((await post({})).body).toMatchObject({ status: "unreachable", tools: [] });
    expect((await post({})).status).toBe(409);
    for (let more = 1; more < 16; more++) expect((await post({ name: `docs-${more}` })).status).toBe(201);
    expect((await post({ name: "one-more" })).status).toBe(409);
  });

  test("is called by an agent once a person has approved exactly that call", async () => {
    await it.person.ask("POST", at, { name: "docs", url: service.url });
    it.calls("Say hello.", ["docs__echo", { said: "hello" }]);
    const runId = await it.queue("Say hello.");
    const approval = await it.asked(runId);
    expect(approval).toMatchObject({ tool: "docs__echo", input: { said: "hello" } });
    expect(service.calls).toEqual([]);
    await it.decide(approval.approvalId, { decision: "approve", inputHash: approval.inputHash });
    await it.until("run.completed", runId);
    expect(service.calls).toEqual([{ name: "echo", input: { said: "hello" } }]);
    expect(it.results("Say hello.")).toEqual([expect.stringContaining("You said hello.")]);
    expect((await it.person.ask("GET", it.at("/tools"))).body.data).toContainEqual({
      name: "docs__echo",
      description: "Says it again.",
      inputSchema: expect.objectContaining({ required: ["said"] }),
      source: "mcp:docs",
      changes: "outside",
      untrustedOutput: true,
      policy: "ask",
      defaultPolicy: "ask",
    });
  });
});
