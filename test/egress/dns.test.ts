import { afterAll, expect, test } from "bun:test";
import { Resolver } from "node:dns/promises";
import { kindOf } from "../../src/egress/address.ts";
import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { EgressError } from "../../src/egress/refusal.ts";
import { startHostileWeb } from "./hostile-web.ts";
import { startNameServer } from "./name-server.ts";

const nameServer = await startNameServer({
  "honest.test": () => ["127.0.0.2"],
  "loopback.test": () => ["127.0.0.1"],
  "mapped.test": () => ["::ffff:127.0.0.1"],
  "half.test": () => ["127.0.0.2", "169.254.169.254"],
  "rebinding.test": (query) => (query === 1 ? ["127.0.0.2"] : ["127.0.0.1"]),
  "silent.test": () => "silence",
});

const web = startHostileWeb({ hostname: "127.0.0.2" });
const inside = startHostileWeb();
afterAll(() => {
  nameServer.close();
  web.stop();
  inside.stop();
});

const resolver = new Resolver({ timeout: 60_000, tries: 1 });
resolver.setServers([`127.0.0.1:${nameServer.port}`]);
const egressWithin = (deadlineMs: number) =>
  createEgress({
    policy: createEgressPolicy("public"),
    deadlineMs,
    kindOf: (address) => (address === "127.0.0.2" ? "public" : kindOf(address)),
    async resolve(name) {
      const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      return found.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    },
  });
const patient = egressWithin(60_000);
const get = async (name: string, port = web.port, egress = patient): Promise<string> => {
  const signal = new AbortController().signal;
  try {
    return (
      await egress.send({ url: `http://${name}:${port}/ok`, accountId: "acc_a", instanceId: "inst_a", signal })
    ).body.toString();
  } catch (error) {
    return error instanceof EgressError ? error.fault : String(error);
  }
};

test("names of a hostile name server lead nowhere but to public addresses", async () => {
  expect(await get("honest.test")).toBe("ok");
  for (const name of ["loopback.test", "mapped.test", "half.test"]) {
    expect([name, await get(name, inside.port)]).toEqual([name, "address"]);
  }
  expect(await get("nowhere.test")).toBe("dns");
  expect(inside.connections).toBe(0);
});

test("a name that answers differently each time is asked for once in a request", async () => {
  expect(await get("rebinding.test")).toBe("ok");
  expect(nameServer.asked("rebinding.test")).toBe(1);
  expect(await get("rebinding.test", inside.port)).toBe("address");
  expect(inside.connections).toBe(0);
});

test("a name server that never answers ends a request, by the resolver's deadline or its own", async () => {
  expect(["dns", "deadline"]).toContain(await get("silent.test", web.port, egressWithin(2_000)));
});
