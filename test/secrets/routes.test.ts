import { expect, test } from "bun:test";
import { type Caller, SCOPES, type Scope } from "../../src/limits/caller.ts";
import { openMasterKey } from "../../src/secrets/master-key.ts";
import { secretRoutes } from "../../src/secrets/routes.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { openGround, serve } from "../support/route-harness.ts";

function openRoom() {
  const ground = openGround();
  const secrets = createSecrets({ ...ground, masterKey: openMasterKey(ground.dataDir) });
  const server = serve(secretRoutes(secrets, ground.instances), ground);
  const owner = ground.account();
  const { instanceId } = ground.instances.create(owner, "one");
  const path = `/v1/instances/${instanceId}/secrets`;
  return {
    ...server,
    ground,
    secrets,
    owner,
    instanceId,
    path,
    post: (body: unknown) => server.send(owner, "POST", path, body),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await ground[Symbol.asyncDispose]();
    },
  };
}

const withScopes = (caller: Caller, ...scopes: Scope[]): Caller => ({ ...caller, scopes: new Set(scopes) });
const UNKNOWN = "inst_019378a0000070008000000000000000";

test("many secrets are stored at once: 201 with their names", async () => {
  await using room = openRoom();
  const { status, body } = await room.post({ secrets: { TOKEN: "abc", _b2: "def" } });
  expect(status).toBe(201);
  expect(body).toEqual({ keys: ["TOKEN", "_b2"] });
  expect(room.secrets.read(room.instanceId, "TOKEN")).toBe("abc");
  expect(room.secrets.read(room.instanceId, "_b2")).toBe("def");
});

test("one secret is stored by key and value: 201 with its name", async () => {
  await using room = openRoom();
  const { status, body } = await room.post({ key: "TOKEN", value: " spaces stay " });
  expect(status).toBe(201);
  expect(body).toEqual({ keys: ["TOKEN"] });
  expect(room.secrets.read(room.instanceId, "TOKEN")).toBe(" spaces stay ");
});

test("an existing name gets the new value and keeps its creation time", async () => {
  let now = 1_000;
  const clock = { now: () => now, monotonicNs: () => 0n };
  await using ground = openGround(clock);
  const secrets = createSecrets({ ...ground, masterKey: openMasterKey(ground.dataDir) });
  await using server = serve(secretRoutes(secrets, ground.instances), ground);
  const owner = ground.account();
  const { instanceId } = ground.instances.create(owner, "one");
  const path = `/v1/instances/${instanceId}/secrets`;
  await server.send(owner, "POST", path, { key: "TOKEN", value: "one" });
  now = 2_000;
  expect((await server.send(owner, "POST", path, { key: "TOKEN", value: "two" })).status).toBe(201);
  const { body } = await server.send(owner, "GET", path);
  const [createdAt, updatedAt] = ["1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000Z"];
  expect(body).toEqual({ data: [{ key: "TOKEN", createdAt, updatedAt }], hasMore: false, nextCursor: null });
  expect(secrets.read(instanceId, "TOKEN")).toBe("two");
});

const MAX_NAME = `A${"b".repeat(127)}`;

test.each([
  ["the longest name", { secrets: { [MAX_NAME]: "v" } }],
  ["names that objects have already", JSON.parse('{"secrets":{"__proto__":"v","constructor":"v","toString":"v"}}')],
  ["the longest value", { key: "A", value: "é".repeat(32 * 1024) }],
  ["one byte", { key: "A", value: " " }],
  ["a hundred at once", { secrets: Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`N${at}`, "v"])) }],
  ["fields that nobody knows", { key: "A", value: "v", other: 1 }],
])("%s: accepted", async (_, input) => {
  await using room = openRoom();
  const { status, body } = await room.post(input);
  expect(status).toBe(201);
  expect(room.secrets.names(room.instanceId).sort()).toEqual([...body.keys].sort());
});

const NAME = "a name of 1 to 128 letters, digits and underscores, not beginning with a digit";
const VALUE = "text of 1 byte to 64 KiB";
const EACH_KEY = `secrets: expected each key to be ${NAME}`;
const MANY = "secrets: expected an object of 1 to 100 names, each with its value";
const EITHER = "body: expected either secrets, or key and value";

test.each([
  ["nothing", {}, EITHER],
  ["both forms", { secrets: { A: "hush" }, key: "B", value: "hush" }, EITHER],
  ["both forms, half of one", { secrets: { A: "hush" }, value: "hush" }, EITHER],
  ["a list", [], /^body: expected /],
  ["no secrets", { secrets: {} }, MANY],
  ["a list of secrets", { secrets: ["hush"] }, MANY],
  ["null", { secrets: null }, MANY],
  ["101 at once", { secrets: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`N${at}`, "v"])) }, MANY],
  ["an empty name", { secrets: { "": "hush" } }, EACH_KEY],
  ["a name that begins with a digit", { secrets: { "1A": "hush" } }, EACH_KEY],
  ["a name with a dash", { secrets: { A: "hush", "hush-hush": "v" } }, EACH_KEY],
  ["a name that is too long", { secrets: { [`${MAX_NAME}c`]: "hush" } }, EACH_KEY],
  ["a name with a line break behind", { secrets: { "A\n": "hush" } }, EACH_KEY],
  ["an empty value", { secrets: { GOOD: "hush", TOKEN: "" } }, `secrets.TOKEN: expected ${VALUE}`],
  ["a number", { secrets: { TOKEN: 5 } }, `secrets.TOKEN: expected ${VALUE}`],
  ["null for a value", { secrets: { TOKEN: null } }, `secrets.TOKEN: expected ${VALUE}`],
  ["half a character", '{"secrets":{"TOKEN":"hush\\ud800"}}', `secrets.TOKEN: expected ${VALUE}`],
  ["a value that is too long", { secrets: { A: "é".repeat(32 * 1024 + 1) } }, `secrets.A: expected ${VALUE}`],
  ["a key alone", { key: "TOKEN" }, `value: expected ${VALUE}`],
  ["a value alone", { value: "hush" }, `key: expected ${NAME}`],
  ["a bad key", { key: "TO KEN", value: "hush" }, `key: expected ${NAME}`],
  ["an empty value by key", { key: "TOKEN", value: "" }, `value: expected ${VALUE}`],
])("%s: 400 that names the field, reveals no value and stores nothing", async (_, input, message) => {
  await using room = openRoom();
  const { status, body } = await room.post(input);
  expect(status).toBe(400);
  expect(body.error.code).toBe("invalid_request");
  expect(body.error.message).toMatch(message);
  expect(body.error.message).not.toContain("hush");
  expect(room.secrets.names(room.instanceId)).toEqual([]);
});

test("the 101st secret of an instance: 409, and none of its request is stored", async () => {
  await using room = openRoom();
  await room.post({ secrets: Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`N${at}`, "v"])) });
  const { status, body } = await room.post({ secrets: { X: "v", Y: "v" } });
  expect(status).toBe(409);
  expect(body.error.message).toBe("secrets: expected at most 100 for an instance; this would make it 101");
  expect(room.secrets.names(room.instanceId)).toHaveLength(99);
});

test("a body over a mebibyte: 413", async () => {
  await using room = openRoom();
  expect((await room.post({ key: "A", value: "v".repeat(1024 * 1024) })).status).toBe(413);
});

test("the list is paged by name and never carries a value", async () => {
  await using room = openRoom();
  await room.post({ secrets: { b: "hush", C: "hush", a: "hush", _: "hush", B: "hush" } });
  const seen: string[] = [];
  let after = "";
  for (let page = 0; page < 3; page++) {
    const { status, body } = await room.send(room.owner, "GET", `${room.path}?limit=2${after}`);
    expect(status).toBe(200);
    expect(JSON.stringify(body)).not.toContain("hush");
    seen.push(...body.data.map(({ key }: { key: string }) => key));
    expect(body.hasMore).toBe(page < 2);
    after = `&after=${body.nextCursor}`;
    // A row before the cursor does not come again; one after it is seen.
    if (page === 0) await room.post({ secrets: { A: "v", z: "v" } });
  }
  expect(seen).toEqual(["B", "C", "_", "a", "b", "z"]);
});

test("a limit out of range, or another list's cursor: 400", async () => {
  await using room = openRoom();
  const other = room.ground.instances.create(room.owner, "two");
  for (const instanceId of [room.instanceId, other.instanceId]) {
    room.secrets.set(room.owner.accountId, instanceId, new Map([["A", "v"], ["B", "v"]])); // biome-ignore format: short
  }
  const { body } = await room.send(room.owner, "GET", `/v1/instances/${other.instanceId}/secrets?limit=1`);
  for (const query of ["limit=0", "limit=101", "limit=x", "after=", "after=x", `after=${body.nextCursor}`]) {
    expect((await room.send(room.owner, "GET", `${room.path}?${query}`)).status).toBe(400);
  }
});

test("a secret is deleted once: 200, then 404", async () => {
  await using room = openRoom();
  await room.post({ secrets: { A: "v", B: "v" } });
  const first = await room.send(room.owner, "DELETE", `${room.path}/A`);
  expect([first.status, first.body]).toEqual([200, { key: "A", deleted: true }]);
  const second = await room.send(room.owner, "DELETE", `${room.path}/A`);
  expect([second.status, second.body.error.message]).toEqual([404, "secret not found"]);
  expect((await room.send(room.owner, "DELETE", `${room.path}/not%20a%20name`)).status).toBe(404);
  expect(room.secrets.names(room.instanceId)).toEqual(["B"]);
});

test("an instance that does not exist, is somebody else's or is hidden from the key: 404 before the body is checked", async () => {
  await using room = openRoom();
  await room.post({ key: "A", value: "v" });
  const other = room.ground.instances.create(room.owner, "two");
  const limited: Caller = { ...room.owner, instanceId: other.instanceId, keyId: "key_1" };
  const asked: [Caller, string][] = [
    [room.ground.account(), room.path],
    [limited, room.path],
    [room.owner, `/v1/instances/${UNKNOWN}/secrets`],
    [room.owner, "/v1/instances/nonsense/secrets"],
  ];
  for (const [caller, path] of asked) {
    const answers = [
      await room.send(caller, "POST", path, { key: "A", value: "stolen" }),
      await room.send(caller, "POST", path, { key: "" }),
      await room.send(caller, "POST", path, "{"),
      await room.send(caller, "GET", path),
      await room.send(caller, "GET", `${path}?limit=0`),
      await room.send(caller, "DELETE", `${path}/A`),
    ];
    for (const { status, body } of answers) {
      expect([status, body.error.code, body.error.message]).toEqual([404, "not_found", "instance not found"]);
    }
  }
  expect(room.secrets.read(room.instanceId, "A")).toBe("v");
  expect((await room.send(limited, "GET", `/v1/instances/${other.instanceId}/secrets`)).status).toBe(200);
});

test("without credentials: 401; writing without the scope write: 403", async () => {
  await using room = openRoom();
  await room.post({ key: "A", value: "v" });
  const requests: [string, string][] = [["POST", room.path], ["GET", room.path], ["DELETE", `${room.path}/A`]]; // biome-ignore format: short
  for (const [method, path] of requests) expect((await room.send(null, method, path)).status).toBe(401);
  for (const scope of SCOPES) {
    const caller = withScopes(room.owner, scope);
    const expected = scope === "write" ? [201, 200, 200] : [403, 200, 403];
    const statuses = [
      await room.send(caller, "POST", room.path, { key: "A", value: "v" }),
      await room.send(caller, "GET", room.path),
      await room.send(caller, "DELETE", `${room.path}/A`),
    ].map(({ status }) => status);
    expect(statuses).toEqual(expected);
  }
});

test("a repetition with the same Idempotency-Key stores once and leaves no value behind", async () => {
  await using room = openRoom();
  const body = { key: "A", value: "correct-horse-battery" };
  const send = () => room.send(room.owner, "POST", room.path, body, { "idempotency-key": "k1" });
  const first = await send();
  room.secrets.set(room.owner.accountId, room.instanceId, new Map([["A", "newer"]]));
  const again = await send();
  expect([again.status, again.body, again.headers.get("idempotent-replayed")]).toEqual([201, first.body, "true"]);
  expect(room.secrets.read(room.instanceId, "A")).toBe("newer");
  const kept = room.ground.store.sqlite.query("SELECT * FROM idempotent_requests").values();
  expect(JSON.stringify(kept)).not.toContain("correct-horse");
});
