import { afterAll, expect, test } from "bun:test";
import fc from "fast-check";
import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { EgressError } from "../../src/egress/refusal.ts";
import { startHostileWeb } from "./hostile-web.ts";

let next: Buffer = Buffer.alloc(0);
const web = startHostileWeb({ answers: { "/any": () => next } });
const host = `127.0.0.1:${web.port}`;
const egress = createEgress({ policy: createEgressPolicy([host]) });
afterAll(() => web.stop());

async function ask(answer: Buffer): Promise<string> {
  next = answer;
  const signal = new AbortController().signal;
  try {
    const { status } = await egress.send({
      url: `http://${host}/any`,
      accountId: "acc_a",
      instanceId: "inst_a",
      signal,
    });
    return `answered ${status}`;
  } catch (error) {
    return error instanceof EgressError ? error.fault : `threw ${error}`;
  }
}

const lines = fc.constantFrom(
  "HTTP/1.1 200 OK",
  "HTTP/1.1 100 Continue",
  "HTTP/1.1 302 Found",
  "Location: /any",
  "Location: http://[",
  "Content-Length: 3",
  "Content-Length: -1",
  "Content-Length: 99999999999999999",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Content-Encoding: gzip",
  "Content-Encoding: br",
  "Content-Encoding: toString",
  "X : y",
  ": y",
  "",
  "3",
  "abc",
  "0",
  "ffffffff",
);

test("whatever a server sends, the end is an answer or an error that says what was wrong", async () => {
  const broken = fc.array(lines, { maxLength: 12 }).map((all) => Buffer.from(all.join("\r\n")));
  const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  const headed = noise.map((bytes) =>
    Buffer.concat([Buffer.from("HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n"), bytes]),
  );
  await fc.assert(
    fc.asyncProperty(fc.oneof(broken, noise, headed), async (answer) => {
      expect(await ask(answer)).toMatch(/^(?:answered [2-5]\d\d|protocol|size|redirect|url|connect)$/);
      expect(egress.connections()).toBe(0);
    }),
    { numRuns: 500 },
  );
});
