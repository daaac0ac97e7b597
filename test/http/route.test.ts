import { Database } from "bun:sqlite";
import { describe, expect, expectTypeOf, test } from "bun:test";
import { join } from "node:path";
import { z } from "zod";
import { type Asked, type CommitKind, type Route, route } from "../../src/http/route.ts";
import type { Instance } from "../../src/instances/schema.ts";
import type { Caller } from "../../src/limits/caller.ts";
import { type Ground, openGround, serve } from "../support/route-harness.ts";
import { hold } from "./held-request.ts";

/** What these routes have in common. */
const described = { name: "doIt", tag: "host", summary: "Do it", bound: "record", answer: z.unknown() } as const;
const finder =
  ({ instances }: Ground) =>
  ({ caller, params }: Asked<{ instanceId: string }>) =>
    instances.get(caller, params.instanceId);

/** A server that identifies this caller by the given headers. */
async function open(ground: Ground, table: Route[]) {
  const server = serve(table, ground);
  const caller = ground.account();
  await server.send(caller, "GET", "/v1/nowhere");
  const headers = { "X-Caller": `${caller.accountId} null ${[...caller.scopes].join("+")}` };
  return { server, caller, headers, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

describe("what a route's find returns", () => {
  const path = "/v1/instances/:instanceId";
  const rename = (ground: Ground, begun = () => {}) =>
    route({
      ...described,
      method: "PATCH",
      path,
      access: "write",
      body: z.object({ name: z.string() }),
      find(asked) {
        begun();
        return finder(ground)(asked);
      },
      commit: "shared",
      write: ({ found, body }) => ground.instances.change(found, { name: body.name }),
    });

  test("is looked for before the body is read: what does not exist is a 404 without it", async () => {
    await using ground = openGround();
    await using host = await open(ground, [rename(ground)]);
    const request = await hold(host.server.url, "PATCH", "/v1/instances/inst_x", '{"name":"new"}', host.headers);
    expect((await request.answered).status).toBe(404);
    request.destroy();
  });

  test("is looked for again in the commit: if it is gone by then, 404, and nothing changes", async () => {
    await using ground = openGround();
    const begun = Promise.withResolvers<void>();
    await using host = await open(ground, [rename(ground, begun.resolve)]);
    const instance = ground.instances.create(host.caller, "old");
    const at = `/v1/instances/${instance.instanceId}`;
    const request = await hold(host.server.url, "PATCH", at, '{"name":"new"}', host.headers);
    await begun.promise;
    ground.instances.remove(instance);
    expect((await request.release()).status).toBe(404);
    const names = ground.store.sqlite.query("SELECT name FROM instances").all();
    expect(names).toEqual([{ name: "old" }]);
  });

  test("is passed to the change as it is in the commit", async () => {
    await using ground = openGround();
    const begun = Promise.withResolvers<void>();
    await using host = await open(ground, [rename(ground, begun.resolve)]);
    const instance = ground.instances.create(host.caller, "old");
    const at = `/v1/instances/${instance.instanceId}`;
    const request = await hold(host.server.url, "PATCH", at, '{"name":"new"}', host.headers);
    await begun.promise;
    ground.instances.stop(instance);
    expect((await request.release()).status).toBe(200);
    expect(ground.instances.get(host.caller, instance.instanceId)).toMatchObject({ name: "new", status: "stopped" });
  });
});

describe("a route's commit", () => {
  /** Creates twice in one turn; each time the answer is how many instances another connection sees. */
  const twice = (ground: Ground, commit: CommitKind) =>
    route({
      ...described,
      method: "POST",
      path: "/v1/do",
      access: "write",
      commit,
      async handle({ body, commit }) {
        await body();
        ground.store.sqlite.run("DROP TABLE IF EXISTS notes");
        ground.store.sqlite.run("CREATE TABLE notes (note INTEGER PRIMARY KEY)");
        const write = ground.store.sqlite.prepare("INSERT INTO notes DEFAULT VALUES");
        using other = new Database(join(ground.dataDir, "roost.db"), { readonly: true });
        const count = other.prepare("SELECT count(*) AS seen FROM notes");
        const operate = () => {
          write.run();
          return count.get();
        };
        return await Promise.all([commit(operate), commit(operate)]);
      },
    });

  test("is shared with the other changes of the turn", async () => {
    await using ground = openGround();
    await using host = await open(ground, [twice(ground, "shared")]);
    const send = async () => (await host.server.send(host.caller, "POST", "/v1/do")).body;
    let seen = await send();
    // On a busy machine the first may take longer than a commit's share of a turn: the other is then in the next commit.
    for (let more = 20; more > 0 && seen[1].seen > 0; more--) seen = await send();
    expect(seen).toEqual([{ seen: 0 }, { seen: 0 }]);
  });

  test("or is a transaction of its own, with nothing else in it", async () => {
    await using ground = openGround();
    await using host = await open(ground, [twice(ground, "alone")]);
    expect((await host.server.send(host.caller, "POST", "/v1/do")).body).toEqual([{ seen: 0 }, { seen: 1 }]);
  });

  test.each(["shared", "alone"] as const)(
    "stores the answer with the change, and neither without the other: %s",
    async (commit) => {
      await using ground = openGround();
      let fails = true;
      const create = route({
        ...described,
        method: "POST",
        path: "/v1/do",
        access: "write",
        status: 201,
        commit,
        write({ caller }) {
          const { instanceId } = ground.instances.create(caller, "one");
          if (fails) throw new Error("the disk is on fire");
          return { instanceId };
        },
      });
      await using host = await open(ground, [create]);
      const ask = () => host.server.send(host.caller, "POST", "/v1/do", undefined, { "Idempotency-Key": "k" });
      const count = () => ground.store.sqlite.query("SELECT count(*) AS n FROM instances").get();
      expect([(await ask()).status, count()]).toEqual([500, { n: 0 }]);
      fails = false;
      const first = await ask();
      const again = await ask();
      expect([first.status, again.status, again.body]).toEqual([201, 201, first.body]);
      expect([again.headers.get("idempotent-replayed"), count()]).toEqual(["true", { n: 1 }]);
    },
  );
});

describe("a route's types", () => {
  const access = "write";

  test("are those of what it finds and takes", () => {
    route({
      ...described,
      method: "POST",
      path: "/v1/things/:thingId/parts/*",
      access,
      query: z.object({ limit: z.string().transform(Number) }),
      body: z.object({ at: z.string().transform((text) => new Date(text)) }),
      find: ({ params }) => ({ thing: params.thingId.length }),
      commit: "shared",
      async handle({ caller, params, found, find, query, body, commit }) {
        expectTypeOf(caller).toEqualTypeOf<Caller>();
        expectTypeOf(params["*"]).toEqualTypeOf<string>();
        expectTypeOf(found).toEqualTypeOf<{ thing: number }>();
        expectTypeOf(find()).toEqualTypeOf<{ thing: number }>();
        expectTypeOf(query()).toEqualTypeOf<{ limit: number }>();
        expectTypeOf(await body()).toEqualTypeOf<{ at: Date }>();
        expectTypeOf(await commit(({ thing }) => String(thing))).toEqualTypeOf<string>();
      },
    });
    route({
      ...described,
      method: "PUT",
      path: "/v1/things/:instanceId",
      access,
      body: "text/plain",
      find: finder({} as Ground),
      commit: "alone",
      write({ found, body, params }) {
        expectTypeOf(found).toEqualTypeOf<Instance>();
        expectTypeOf(body).toEqualTypeOf<Uint8Array>();
        // @ts-expect-error the path has no such parameter
        return params.agentId;
      },
    });
  });

  test("reject what a route does not declare", () => {
    const plain = { ...described, method: "POST", path: "/v1/do" } as const;
    // @ts-expect-error a write names its commit
    route({ ...plain, access, write: () => null });
    // @ts-expect-error without a commit there is none to call
    route({ ...plain, access, handle: ({ commit }) => commit });
    route({ ...plain, access, handle: ({ body }) => body().then((nothing) => expectTypeOf(nothing).toBeUndefined()) });
    route({ ...plain, access: "public", handle: ({ caller }) => expectTypeOf(caller).toBeNull() });
    // @ts-expect-error nobody is known on a public route
    route({ ...plain, access: "public", find: ({ caller }) => caller.accountId, handle: () => null });
    // @ts-expect-error it finds an instance by a parameter that its path has not
    route({ ...plain, access, find: finder({} as Ground), handle: () => null });
  });
});
