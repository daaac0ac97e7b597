import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { checkDatabase } from "../../src/cli/operator/check-data.ts";
import { formatMoney } from "../../src/lib/money.ts";
import { type Anvil, startAnvil } from "../support/anvil.ts";
import { type RunningBinary, runBinary, startBinary } from "../support/binary.ts";
import type { Answer } from "../support/test-server.ts";
import { isDead, portOfItsOwn, turn } from "./dying-server.ts";

const KILLS = 200;
const MAX_LIFE_MS = 150;
const PEOPLE = 3;
/** A cent each second: enough for journal entries in the server's short lives here. */
const PRICE_PER_HOUR = 36n;

const home = mkdtempSync(join(tmpdir(), "roost-money-"));
const dataDir = join(home, "data");
let chain: Anvil;
let server: RunningBinary;
/** Ends the repetition of requests. */
let hasEnded = false;
/** When the current server was started, and how long the ones before it lived, by the same clock. */
let bornMs = 0;
let livedMs = 0;

const start = () => {
  bornMs = performance.now();
  return startBinary({
    dataDir,
    port: portOfItsOwn(),
    env: {
      ROOST_WALLET: chain.accounts[9]?.address ?? "",
      ROOST_NETWORKS: "base",
      ROOST_BASE_RPC_URL: chain.url,
      ROOST_BASE_CONFIRMATIONS: "1",
      ROOST_PRICE_PER_HOUR: String(PRICE_PER_HOUR),
      // Every second round leaves an instance running.
      ROOST_MAX_INSTANCES: "100000",
      // The log then has every request, and so says who has answered it.
      ROOST_LOG_LEVEL: "debug",
    },
  });
};

beforeAll(async () => {
  chain = await startAnvil({ network: "base" });
  server = await start();
});

afterAll(async () => {
  hasEnded = true;
  await server.kill();
  await chain.stop();
  rmSync(home, { recursive: true, force: true });
});

/** Repeats the request until it is answered, whatever dies meanwhile. */
async function untilAnswered(method: string, path: string, token: string, body?: object, payment?: object) {
  while (!hasEnded) {
    const asked = server;
    try {
      const response = await fetch(asked.url + path, {
        method,
        headers: {
          Authorization: `Bearer ${token}`,
          "Content-Type": "application/json",
          ...(payment ? { "X-PAYMENT": JSON.stringify(payment) } : {}),
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      const answer = { status: response.status, body: await response.json() } as Pick<Answer, "status" | "body">;
      if (answer.status === 401) throw await strangeRefusal(asked, answer.body.error);
      return answer;
    } catch (error) {
      if (!isDead(error)) throw error;
      await turn();
    }
  }
  throw new Error("the test has ended");
}

/** Every token here is valid: says whether the server that was asked has refused one, or another at its address. */
async function strangeRefusal(asked: RunningBinary, { message, requestId }: { message: string; requestId: string }) {
  const line = () => asked.logs.find((logged) => logged.requestId === requestId);
  // A line may come after the answer.
  for (let tries = 0; tries < 100 && !line(); tries++) await turn();
  const said = JSON.stringify(line()) ?? `not in the log of this server: ${requestId}`;
  return new Error(`${asked.url} said "${message}" (${said})\n${asked.errors()}`);
}

async function signUp(number: number): Promise<string> {
  const { links, store } = openFoundation({ dataDir });
  const link = links.create(`person${number}@example.com`, 5_000_000n);
  store.close();
  return (await untilAnswered("POST", "/v1/auth/redeem-link", "", { link })).body.token;
}

/** Tops up again and again; every transfer is presented until it is acknowledged. */
function startPayer(token: string, from: Anvil["accounts"][number] | undefined) {
  let pays = true;
  const paid: { txHash: string; amount: string }[] = [];
  const paying = (async () => {
    while (pays) {
      const quoted = await untilAnswered("POST", "/v1/billing/top-up", token, {});
      expect(quoted).toMatchObject({ status: 402, body: { x402: { network: "base" } } });
      const quote = quoted.body.x402;
      const amount = BigInt(quote.amount.replace(".", ""));
      const txHash = await chain.transfer({ to: quote.recipient, amount, ...(from && { from: from.address }) });
      for (;;) {
        const answer = await untilAnswered("POST", "/v1/billing/top-up", token, {}, { txHash, network: "base" });
        // Otherwise it was credited, and the answer was lost with the server.
        if (answer.status === 201 || /already credited/.test(answer.body.error.message)) break;
        expect([402, 429]).toContain(answer.status);
        await turn();
      }
      paid.push({ txHash, amount: quote.amount });
    }
  })();
  return {
    paid,
    /** Rejects at the first answer that must not be. */
    done: paying,
    async stop() {
      pays = false;
      await paying;
    },
  };
}

/** Creates, stops, starts and deletes instances; whatever is acknowledged must hold. */
function startUser(token: string) {
  let uses = true;
  let rounds = 0;
  const using = (async () => {
    for (; uses; rounds++) {
      const made = await untilAnswered("POST", "/v1/instances", token, { name: `round ${rounds}` });
      if (made.status === 402) continue;
      expect(made.status).toBe(201);
      const path = `/v1/instances/${made.body.instanceId}`;
      const stopped = await untilAnswered("POST", `${path}/stop`, token);
      expect(stopped).toMatchObject({ status: 200, body: { status: "stopped" } });
      const { accrued } = stopped.body.billing;
      expect(await untilAnswered("GET", path, token)).toMatchObject({ status: 200, body: { billing: { accrued } } });
      await untilAnswered("POST", `${path}/start`, token);
      if (rounds % 2 === 0) expect([200, 404]).toContain((await untilAnswered("DELETE", path, token)).status);
    }
  })();
  return {
    rounds: () => rounds,
    done: using,
    async stop() {
      uses = false;
      await using;
    },
  };
}

test(`killed ${KILLS} times while metering and crediting: every transfer is credited once, and the books are correct`, async () => {
  const tokens: string[] = [];
  for (let number = 0; number < PEOPLE; number++) tokens.push(await signUp(number));
  const payers = tokens.map((token, at) => startPayer(token, chain.accounts[at]));
  const users = tokens.map(startUser);
  const isEnough = () =>
    payers.reduce((sum, { paid }) => sum + paid.length, 0) > KILLS / 10 &&
    users.reduce((sum, user) => sum + user.rounds(), 0) > KILLS / 10;
  const working = [...payers, ...users].map(({ done }) => done);
  // On a slow machine some more, with longer lives, until there is enough that could be lost.
  for (let kill = 0; kill < KILLS || !isEnough(); kill++) {
    const life = Bun.sleep(Math.random() * MAX_LIFE_MS * Math.max(1, kill / KILLS));
    await Promise.race([life, ...working]);
    await server.kill();
    livedMs += performance.now() - bornMs;
    expect(checkDatabase({ dataDir })).toMatchObject({ ok: true });
    server = await start();
  }
  await Promise.all([...payers, ...users].map((one) => one.stop()));
  await server.stop();
  livedMs += performance.now() - bornMs;

  const doctor = JSON.parse((await runBinary(["doctor", "--json", "--data", dataDir])).output);
  expect(doctor.find(({ check }: { check: string }) => check === "database")).toMatchObject({ ok: true });

  const paid = payers.flatMap((payer) => payer.paid);
  expect(topUps()).toEqual(Object.fromEntries(paid.map(({ txHash, amount }) => [txHash, amount])));
  // Nothing was billed while no server was running.
  const most = (BigInt(Math.ceil(livedMs)) * PRICE_PER_HOUR * 1_000_000n) / 3_600_000n;
  const costs = costOfInstances();
  expect(costs.length).toBeGreaterThan(0);
  expect(costs.filter((cost) => cost > most)).toEqual([]);
});

function query<T>(sql: string): T[] {
  const database = new Database(join(dataDir, "roost.db"), { readonly: true });
  try {
    return database.query<T, []>(sql).all();
  } finally {
    database.close();
  }
}

/** Transaction hash → the total credited for it. */
function topUps(): Record<string, string> {
  const rows = query<{ hash: string; amount: number }>(
    `SELECT tx_hash AS hash, sum(amount) AS amount FROM journal_entries JOIN postings USING (entry_id)
     WHERE type = 'top_up' AND ledger_account = 'customer:' || account_id GROUP BY tx_hash`,
  );
  return Object.fromEntries(rows.map(({ hash, amount }) => [hash, formatMoney(BigInt(amount))]));
}

const costOfInstances = (): bigint[] =>
  query<{ cost: number }>("SELECT sum(cost) AS cost FROM usage_days GROUP BY instance_id").map(({ cost }) =>
    BigInt(cost),
  );
