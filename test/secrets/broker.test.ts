import { expect, test } from "bun:test";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { targetOf } from "../../src/egress/target.ts";
import { createSliceTurns } from "../../src/limits/slices.ts";
import { createBroker } from "../../src/secrets/broker.ts";
import { openMasterKey } from "../../src/secrets/master-key.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import type { Place } from "../../src/tools/secret-broker.ts";
import { openGround } from "../support/route-harness.ts";

const OWN = new Set(["api.example.com", "local.example:8080"]);
const NEEDS = {
  hosts: new Set([...OWN, "other.example"]),
  secrets: new Map([
    ["TOKEN", OWN],
    ["KEY", OWN],
    ["OTHER", new Set(["other.example"])],
    ["HOMELESS", new Set<string>()],
  ]),
};

function openRoom(values: Record<string, string>) {
  const ground = openGround();
  const caller = ground.account();
  const { instanceId } = ground.instances.create(caller, "one");
  const secrets = createSecrets({ ...ground, masterKey: openMasterKey(ground.dataDir) });
  let decrypted = 0;
  secrets.set(caller.accountId, instanceId, new Map(Object.entries(values)));
  const policy = createEgressPolicy(["public", "local.example:8080"]);
  const broker = createBroker({
    ...ground,
    secrets: {
      ...secrets,
      values(id) {
        decrypted++;
        return secrets.values(id);
      },
    },
    accountOf: (id) => id,
    requirementsOf: () => NEEDS,
    isNamed: policy.names,
    turns: createSliceTurns(),
  });
  const fill = async (url: string, ...texts: [Place, string][]): Promise<string[] | string> => {
    try {
      return await broker.fill(instanceId, targetOf(url), texts);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  const uses = () => ground.audit.read(0, 100).filter(({ action }) => action === "secret.use");
  return {
    ground,
    instanceId,
    secrets,
    broker,
    fill,
    uses,
    timesDecrypted: () => decrypted,
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

const API = "https://api.example.com/";

test("a placeholder becomes the value, in every place as one value", async () => {
  await using room = openRoom({ TOKEN: 'a b"&=\n{}', KEY: "key-1234\n" });
  expect(await room.fill(API, ["query", "?t={{secret:TOKEN}}&k={{ secret: KEY }}"])).toEqual([
    "?t=a%20b%22%26%3D%0A%7B%7D&k=key-1234%0A",
  ]);
  expect(
    await room.fill(
      API,
      ["form", "t={{secret:TOKEN}}"],
      ["json", '{"t":"{{secret:TOKEN}}"}'],
      ["text", "{{secret:TOKEN}}"],
    ),
  ).toEqual(["t=a%20b%22%26%3D%0A%7B%7D", '{"t":"a b\\"&=\\n{}"}', 'a b"&=\n{}']);
  expect(await room.fill(API, ["header", "Bearer {{secret:KEY}}"], ["header", "none"])).toEqual([
    "Bearer key-1234",
    "none",
  ]);
});

test("a placeholder in a URL is one also as the URL's parser writes it", async () => {
  await using room = openRoom({ KEY: "key-1234" });
  for (const written of ["{{ secret:KEY }}", "%7B%7Bsecret:KEY%7D%7D", "{{secret: KEY}}"]) {
    expect(await room.fill(API, ["query", new URL(`${API}?k=${written}`).search])).toEqual(["?k=key-1234"]);
  }
});

test.each([
  "{{secret:my-key}}",
  "{{secret:}}",
  "{{secret:KEY}",
  "{{secret:1KEY}} {{secret:KEY}}",
  "%7B%7Bsecret:a.b%7D%7D",
])("%p is refused: it would be sent as it is", async (text) => {
  await using room = openRoom({ KEY: "key-1234" });
  expect(await room.fill(API, ["text", text])).toContain("not of the form {{secret:NAME}}");
  expect(room.uses()).toEqual([]);
});

test("a value is not looked through for placeholders", async () => {
  await using room = openRoom({ TOKEN: "{{secret:KEY}}", KEY: "key-1234" });
  expect(await room.fill(API, ["text", "{{secret:TOKEN}}"])).toEqual(["{{secret:KEY}}"]);
});

test.each(["a\r\nX-Evil: 1", "a\nb-line", "tab\u0000zero", "snow☃man"])(
  "%j cannot be smuggled into a header",
  async (value) => {
    await using room = openRoom({ TOKEN: value });
    const told = await room.fill(API, ["header", "Bearer {{secret:TOKEN}}"]);
    expect(told).toContain("a header cannot carry it");
    expect(told).not.toContain(value);
  },
);

test("a secret goes only to the hosts that its skill declares, with their ports, and encrypted", async () => {
  await using room = openRoom({ TOKEN: "token-1", OTHER: "other-1", HOMELESS: "homeless-1", STRAY: "stray-1" });
  const token: [Place, string] = ["header", "{{secret:TOKEN}}"];
  expect(await room.fill("https://API.example.com:443/x", token)).toEqual(["token-1"]);
  // Named by the operator: its address may be private, and it may do without encryption.
  expect(await room.fill("http://local.example:8080/", token)).toEqual(["token-1"]);
  for (const url of [
    "https://other.example/",
    "https://api.example.com:8443/",
    "https://api.example.com.evil.example/",
    "https://evil.example/api.example.com",
    "https://local.example/",
  ]) {
    expect(await room.fill(url, token)).toBe(
      `the secret TOKEN may not be sent to ${new URL(url).host}: the skill that requires it declares api.example.com, local.example:8080`,
    );
  }
  expect(await room.fill("http://api.example.com/", token)).toContain(
    "without encryption: use https://api.example.com",
  );
  for (const name of ["HOMELESS", "STRAY"]) {
    expect(await room.fill(API, ["header", `{{secret:${name}}}`])).toContain("no installed skill declares it");
  }
  // One that may not go there keeps back all of them.
  expect(await room.fill(API, token, ["text", "{{secret:OTHER}}"])).toContain(
    "OTHER may not be sent to api.example.com",
  );
  expect(room.uses().length).toBe(2);
});

test("a secret that is missing, or too short to be found again, is not sent", async () => {
  await using empty = openRoom({});
  expect(await empty.fill(API, ["header", "{{secret:KEY}}"])).toBe(
    "this instance has no secret KEY: ask its owner to store it",
  );
  for (const value of ["abc", "abc\n", "密码鎖", " \n\n\n\n "]) {
    await using room = openRoom({ TOKEN: value });
    for (const place of ["header", "json"] as const) {
      expect(await room.fill(API, [place, "{{secret:TOKEN}}"])).toContain("fewer than 4 characters");
    }
  }
});

test("each use is in the audit log before it leaves, without the value; looking for values is none", async () => {
  await using room = openRoom({ TOKEN: "token-1" });
  await room.fill(API, ["header", "{{secret:TOKEN}}"], ["text", "{{secret:TOKEN}}"]);
  expect(await room.broker.redact(room.instanceId, "got token-1")).toBe("got [secret TOKEN]");
  expect(room.uses()).toMatchObject([{ subject: room.instanceId, detail: '{"key":"TOKEN"}' }]);
});

test("what another master key sealed is left out of the search, and refused for sending", async () => {
  await using room = openRoom({ TOKEN: "token-1" });
  room.ground.store.transaction(() => room.ground.store.sqlite.run("UPDATE secrets SET sealed = zeroblob(40)"));
  expect(await room.broker.redact(room.instanceId, "got token-1")).toBe("got token-1");
  expect(await room.fill(API, ["header", "{{secret:TOKEN}}"])).toContain("changed in the database");
});

test("while no secret changes, they are decrypted once for all texts, also for those of the same time", async () => {
  await using room = openRoom({ TOKEN: "token-1" });
  const { broker, instanceId, secrets } = room;
  const long = "token-1 ".repeat(10_000);
  const found = await Promise.all(Array.from({ length: 20 }, () => broker.redact(instanceId, long)));
  expect(new Set(found)).toEqual(new Set(["[secret TOKEN] ".repeat(10_000)]));
  expect(await broker.redact(instanceId, "token-1")).toBe("[secret TOKEN]");
  expect(room.timesDecrypted()).toBe(1);

  secrets.set("acct_person-1", instanceId, new Map([["TOKEN", "token-2"]]));
  const two = "token-1 token-2";
  expect(await Promise.all([1, 2].map(() => broker.redact(instanceId, two)))).toEqual([
    "token-1 [secret TOKEN]",
    "token-1 [secret TOKEN]",
  ]);
  expect(room.timesDecrypted()).toBe(2);
  secrets.remove("acct_person-1", instanceId, "TOKEN");
  expect(await broker.redact(instanceId, two)).toBe(two);
});
