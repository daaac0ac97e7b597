import { expect, test } from "bun:test";
import { createEgress } from "../../src/egress/egress.ts";
import { createEgressPolicy } from "../../src/egress/policy.ts";
import { createFairTurns } from "../../src/limits/fair-turns.ts";
import { startHostileWeb } from "./hostile-web.ts";

const MUCH = 4 * 1024 * 1024;

test("an account whose servers send much waits for its share, and nobody else does", async () => {
  const answer = Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${MUCH}\r\n\r\n`), Buffer.alloc(MUCH)]);
  const web = startHostileWeb({ answers: { "/much": () => answer } });
  const host = `127.0.0.1:${web.port}`;
  const used = Promise.withResolvers<() => void>();
  let ms = 0;
  const turns = createFairTurns({ maxMs: 1, share: 0.5, now: () => ms, wait: (_, then) => used.resolve(then) });
  const egress = createEgress({ policy: createEgressPolicy([host]), turns });
  const signal = new AbortController().signal;
  const ask = (path: string, accountId: string) =>
    egress.send({ url: `http://${host}${path}`, accountId, instanceId: "inst_a", signal });
  turns.spend("acct_other", () => {});

  let isRead = false;
  const much = ask("/much", "acct_much").finally(() => {
    isRead = true;
  });
  const goOn = await used.promise;
  expect((await ask("/ok", "acct_other")).status).toBe(200);
  expect(isRead).toBe(false);

  // Nobody else has done anything for so long.
  ms += 60_000;
  goOn();
  expect((await much).body).toHaveLength(MUCH);
  web.stop();
});
