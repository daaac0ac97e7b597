import { afterAll, expect, test } from "bun:test";
import { Resolver } from "node:dns/promises";
import { isIPv6 } from "node:net";
import { kindOf } from "../../src/egress/address.ts";
import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { EgressError } from "../../src/egress/refusal.ts";
import { startHostileWeb } from "./hostile-web.ts";

/** Answers of a name server that an attacker runs: by name, a list for each query in turn, or silence. */
const ZONE: Record<string, (query: number) => string[] | "silence"> = {
  "honest.test": () => ["127.0.0.2"],
  "loopback.test": () => ["127.0.0.1"],
  "mapped.test": () => ["::ffff:127.0.0.1"],
  "half.test": () => ["127.0.0.2", "169.254.169.254"],
  "rebinding.test": (query) => (query === 1 ? ["127.0.0.2"] : ["127.0.0.1"]),
  "silent.test": () => "silence",
};

const queries: string[] = [];
/** A name server on loopback: real packets, of the kinds A and AAAA. */
const nameServer = await Bun.udpSocket({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    data(socket, packet, port, address) {
      const labels: string[] = [];
      let at = 12;
      for (; packet[at]; at += (packet[at] ?? 0) + 1) {
        labels.push(packet.toString("latin1", at + 1, at + 1 + (packet[at] ?? 0)));
      }
      const question = packet.subarray(12, at + 5);
      const isV6 = packet.readUInt16BE(at + 1) === 28;
      const name = labels.join(".");
      if (!isV6) queries.push(name);
      const found = ZONE[name]?.(queries.filter((one) => one === name).length);
      if (found === "silence") return;
      const records = (found ?? []).filter((one) => isIPv6(one) === isV6).map((one) => recordOf(one, isV6));
      const head = Buffer.alloc(12);
      packet.copy(head, 0, 0, 2);
      head.writeUInt16BE(found === undefined ? 0x8183 : 0x8180, 2);
      head.writeUInt16BE(1, 4);
      head.writeUInt16BE(records.length, 6);
      socket.send(Buffer.concat([head, question, ...records]), port, address);
    },
  },
});

function recordOf(address: string, isV6: boolean): Buffer {
  const bytes = isV6
    ? Buffer.from("00000000000000000000ffff7f000001", "hex")
    : Buffer.from(address.split(".").map(Number));
  const head = Buffer.from([0xc0, 12, 0, isV6 ? 28 : 1, 0, 1, 0, 0, 0, 0, 0, bytes.length]);
  return Buffer.concat([head, bytes]);
}

const web = startHostileWeb({ hostname: "127.0.0.2" });
const inside = startHostileWeb();
afterAll(() => {
  nameServer.close();
  web.stop();
  inside.stop();
});

const resolver = new Resolver({ timeout: 60_000, tries: 1 });
resolver.setServers([`127.0.0.1:${nameServer.port}`]);
const egress = createEgress({
  policy: createEgressPolicy("public"),
  deadlineMs: 2_000,
  kindOf: (address) => (address === "127.0.0.2" ? "public" : kindOf(address)),
  async resolve(name) {
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    return found.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  },
});
const get = async (name: string, port = web.port): Promise<string> => {
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
  expect(queries.filter((name) => name === "rebinding.test").length).toBe(1);
  expect(await get("rebinding.test", inside.port)).toBe("address");
  expect(inside.connections).toBe(0);
});

test("a name server that never answers ends a request, by the resolver's deadline or its own", async () => {
  expect(["dns", "deadline"]).toContain(await get("silent.test"));
});
