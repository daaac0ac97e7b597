import { afterAll, expect, test } from "bun:test";
import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { EgressError } from "../../src/egress/refusal.ts";
import { makeCertificates } from "./certificates.ts";
import { startHostileWeb } from "./hostile-web.ts";

const certificates = makeCertificates("DNS:good.test", "IP:127.0.0.1");
const plain = startHostileWeb();
const downgrade = () => `HTTP/1.1 302 Moved\r\nLocation: http://good.test:${plain.port}/ok\r\n\r\n`;
const server = startHostileWeb({ tls: certificates.of("DNS:good.test"), answers: { "/downgrade": downgrade } });
const numbered = startHostileWeb({ tls: certificates.of("IP:127.0.0.1") });
afterAll(() => {
  for (const one of [plain, server, numbered]) one.stop();
});

const open = (ca: string | null) =>
  createEgress({
    policy: createEgressPolicy("public"),
    resolve: async () => ["127.0.0.1"],
    kindOf: () => "public",
    ...(ca === null ? {} : { ca }),
  });
const get = async (url: string, ca: string | null = certificates.ca): Promise<string> => {
  const signal = new AbortController().signal;
  try {
    return (await open(ca).send({ url, accountId: "acc_a", instanceId: "inst_a", signal })).body.toString();
  } catch (error) {
    return error instanceof EgressError ? error.fault : String(error);
  }
};

test("a certificate must be for the name in the URL, though the connection goes to an address", async () => {
  expect(await get(`https://good.test:${server.port}/ok`)).toBe("ok");
  expect(await get(`https://other.test:${server.port}/ok`)).toBe("tls");
  expect(await get(`https://127.0.0.1:${server.port}/ok`)).toBe("tls");
});

test("a certificate for an address is good for that address", async () => {
  expect(await get(`https://127.0.0.1:${numbered.port}/ok`)).toBe("ok");
  expect(await get(`https://good.test:${numbered.port}/ok`)).toBe("tls");
});

test("a certificate of an authority that nobody knows is refused, whatever the environment says", async () => {
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  try {
    expect(await get(`https://good.test:${server.port}/ok`, null)).toBe("tls");
    expect(await get(`https://other.test:${server.port}/ok`)).toBe("tls");
  } finally {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  }
});

test("a redirect from https to http is not followed", async () => {
  expect(await get(`https://good.test:${server.port}/downgrade`)).toBe("redirect");
  expect(plain.connections).toBe(0);
});
