import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openHostKeys } from "../../src/accounts/host-keys.ts";
import { openFoundation } from "../../src/app/foundation.ts";
import { createLog } from "../../src/lib/log.ts";
import { createAuditCheckpoints } from "../../src/storage/audit-checkpoints.ts";
import { type Home, makeHome, operate, run } from "./command-line.ts";

let home: Home;
beforeAll(() => {
  home = makeHome();
});
afterAll(() => home.remove());

function addAccount(email: string): void {
  const { store, accounts } = openFoundation(home);
  accounts.create({ email, name: "Ada", credit: 1_000_000n, note: "test" });
  store.close();
}

test("an invite has one use, the host's credit for invites and seven days by default", async () => {
  const before = Date.now();
  const plain = (await operate(home, ["invite", "create", "--json"])).json();
  expect(plain).toEqual({
    inviteId: expect.stringMatching(/^invite_/),
    code: expect.stringMatching(/^roost-/),
    uses: 1,
    credit: "10.000000",
    expiresAt: expect.any(String),
  });
  const life = Date.parse(plain.expiresAt) - before;
  expect(Math.abs(life - 7 * 86_400_000)).toBeLessThan(60_000);
  const told = await operate(home, [
    "invite",
    "create",
    "--uses",
    "3",
    "--credit",
    "5.00",
    "--expires",
    "90m",
    "--json",
  ]);
  expect(told.json()).toMatchObject({ uses: 3, credit: "5.000000" });
  expect(Date.parse(told.json().expiresAt)).toBeLessThan(Date.now() + 90 * 60_000);
  const env = { ROOST_INVITE_CREDIT: "2.5" };
  expect((await operate(home, ["invite", "create", "--json"], { env })).json().credit).toBe("2.500000");
  const none = await operate(home, ["invite", "create", "--credit", "0", "--json"], { env });
  expect(none.json().credit).toBe("0.000000");
});

test("what the first command creates in the data folder is private", async () => {
  await operate(home, ["invite", "create"]);
  expect(statSync(home.dataDir).mode & 0o777).toBe(0o700);
  expect(statSync(join(home.dataDir, "roost.db")).mode & 0o777).toBe(0o600);
});

test("a pipe gets only an invite's code", async () => {
  const { output, errors } = await operate(home, ["invite", "create"]);
  expect(output).toMatch(/^roost-\w+\n$/);
  expect(errors).toContain("for one account");
});

test("a revoked invite is listed as revoked, and cannot be revoked again", async () => {
  const { inviteId, code } = (await operate(home, ["invite", "create", "--json"])).json();
  expect((await operate(home, ["invite", "revoke", inviteId])).code).toBe(0);
  const list = await operate(home, ["invite", "list", "--json"]);
  expect(list.json()).toContainEqual(expect.objectContaining({ inviteId, status: "revoked" }));
  expect(list.output).not.toContain(code);
  expect((await operate(home, ["invite", "list"])).output).toContain(inviteId);
  const again = await operate(home, ["invite", "revoke", inviteId]);
  expect(again).toMatchObject({ code: 1, output: "" });
  expect(again.errors).toStartWith("roost: there is no invite");
});

test("a credit is posted to the ledger with its note, and recorded in the audit log", async () => {
  addAccount("credit@example.org");
  const credited = await operate(home, [
    "account",
    "credit",
    " Credit@Example.org",
    "2.5",
    "--note",
    "thanks",
    "--json",
  ]);
  expect(credited.json()).toMatchObject({ email: "credit@example.org", balance: "3.500000", currency: "USDC" });
  const shown = await operate(home, ["account", "show", "credit@example.org", "--json"]);
  expect(shown.json()).toMatchObject(credited.json());
  const { accountId } = shown.json();
  expect((await operate(home, ["audit", "--json"])).json()).toContainEqual(
    expect.objectContaining({
      actor: "operator",
      action: "account.credit",
      subject: accountId,
      detail: expect.objectContaining({ amount: "2.500000", note: "thanks" }),
    }),
  );
});

test("credit given by mistake is taken back, with a note, in the ledger and the audit log", async () => {
  const email = "debit@example.org";
  addAccount(email);
  const debit = (amount: string) =>
    operate(home, ["account", "debit", email, amount, "--note", "a typing error", "--json"]);
  await operate(home, ["account", "credit", email, "500", "--note", "five"]);
  expect((await debit("495")).json()).toMatchObject({ email, balance: "6.000000" });
  expect((await operate(home, ["audit", "--json"])).json()).toContainEqual(
    expect.objectContaining({
      action: "account.debit",
      detail: expect.objectContaining({ amount: "495.000000", note: "a typing error" }),
    }),
  );
  const { store, accounts, ledger } = openFoundation(home);
  const accountId = accounts.findByEmail(email)?.accountId ?? "";
  expect(store.sqlite.query("SELECT type, note FROM journal_entries ORDER BY entry_id DESC LIMIT 1").get()).toEqual({
    type: "reversal",
    note: "a typing error",
  });
  const usage = { instanceId: "inst_1", hour: 1 };
  ledger.post({ type: "usage", accountId, amount: -2_000_000n, against: "revenue", usage });
  store.close();
  const used = await debit("4.000001");
  expect(used).toMatchObject({ code: 1, errors: expect.stringContaining("only 4.000000 USDC is left of") });
  expect((await operate(home, ["account", "show", email, "--json"])).json().balance).toBe("4.000000");
});

test("what an account has paid itself is not taken", async () => {
  const email = "paid@example.org";
  addAccount(email);
  const { store, accounts, ledger } = openFoundation(home);
  const accountId = accounts.findByEmail(email)?.accountId ?? "";
  const transfer = { chainId: 8453, txHash: `0x${"12".repeat(32)}` };
  ledger.post({ type: "top_up", accountId, amount: 9_000_000n, against: "clearing:base", transfer });
  store.close();
  const debit = (amount: string) => operate(home, ["account", "debit", email, amount, "--note", "all"]);
  expect(await debit("1.000001")).toMatchObject({
    code: 1,
    errors: expect.stringContaining("only 1.000000 USDC of paid@example.org's balance is credit"),
  });
  expect((await debit("1")).output).toBe("Took 1.00 USDC from paid@example.org: 9.00 are left.\n");
  expect((await debit("1")).errors).toContain("only 0.000000 USDC");
});

test("an account is shown with its money: what it used, owes, was asked for, paid and could not be credited", async () => {
  const email = "money@example.org";
  addAccount(email);
  const empty = (await operate(home, ["account", "show", email, "--json"])).json();
  expect(empty).toMatchObject({ owed: "0.000000", spentThisMonth: "0.000000", revenue: "0.000000" });
  expect(empty).toMatchObject({ openInvoices: [], uncredited: [], signedPayments: [], payments: [] });

  const { store, accounts, ledger, clock } = openFoundation(home);
  const accountId = accounts.findByEmail(email)?.accountId ?? "";
  const [hash, lost, payer] = [`0x${"ab".repeat(32)}`, `0x${"cd".repeat(32)}`, `0x${"ef".repeat(20)}`];
  const transfer = { chainId: 8453, txHash: hash };
  store.transaction(() => {
    const paid = ledger.post({ type: "top_up", accountId, amount: 1_003_217n, against: "clearing:base", transfer });
    const usage = { instanceId: "inst_1", hour: 1 };
    ledger.post({ type: "usage", accountId, amount: -30_000n, against: "revenue", usage });
    const now = clock.now();
    const today = new Date(now).toISOString().slice(0, 10);
    const { sqlite } = store;
    sqlite.run("UPDATE balances SET owed = 5 WHERE account_id = ?", [accountId]);
    sqlite.run("INSERT INTO usage_days VALUES (?, ?, 'inst_1', 1, 30000)", [accountId, today]);
    sqlite.run("INSERT INTO usage_days VALUES (?, '2020-01-01', 'inst_1', 1, 7)", [accountId]);
    sqlite.run(
      `INSERT INTO invoices (invoice_id, account_id, amount, status, created_at, expires_at)
       VALUES ('inv_1', ?, 1000042, 'open', ?, ?), ('inv_2', ?, 1000043, 'open', 0, 1)`,
      [accountId, now, now + 3_600_000, accountId],
    );
    sqlite.run(
      `INSERT INTO claims (chain_id, tx_hash, account_id, status, reason, next_try_at, created_at)
       VALUES (137, ?, ?, 'refused', 'wrong token', 0, 0), (8453, ?, ?, 'credited', NULL, 0, 0)`,
      [lost, accountId, hash, accountId],
    );
    sqlite.run(
      `INSERT INTO payments (chain_id, tx_hash, log_index, block_number, block_hash, payer, amount, account_id,
         transaction_id, status, created_at) VALUES (8453, ?, 0, 1, '0x1', '0x2', 1003217, ?, ?, 'final', 0)`,
      [hash, accountId, paid.transactionId],
    );
    sqlite.run(
      `INSERT INTO authorizations (chain_id, payer, nonce, account_id, amount, head, valid_before, status, created_at)
       VALUES (8453, ?, ?, ?, 1000000, 1, 0, 'settling', 0), (8453, ?, ?, ?, 1000000, 1, 0, 'credited', 0)`,
      [payer, hash, accountId, payer, lost, accountId],
    );
  });
  store.close();
  expect((await operate(home, ["account", "show", email, "--json"])).json()).toMatchObject({
    balance: "1.973217",
    owed: "0.000005",
    spentThisMonth: "0.030000",
    revenue: "0.030000",
    openInvoices: [{ invoiceId: "inv_1", amount: "1.000042" }],
    uncredited: [{ network: "polygon", txHash: lost, status: "refused", reason: "wrong token" }],
    signedPayments: [{ network: "base", payer, amount: "1.000000", status: "settling", txHash: null }],
    payments: [{ network: "base", txHash: hash, amount: "1.003217", status: "final" }],
  });
  const { output } = await operate(home, ["account", "show", email]);
  for (const line of [
    /^Revenue +0\.03 USDC$/m,
    /^Invoice +1\.000042 USDC, open until .*inv_1$/m,
    /^Not credited +polygon 0x(cd)+: refused, wrong token$/m,
    /^Signed payment +1970-01-01 00:00Z +1\.00 USDC from 0x(ef)+, base: settling$/m,
    /^Payment +1970-01-01 00:00Z +1\.003217 USDC, base 0x(ab)+: final$/m,
  ])
    expect(output).toMatch(line);
});

test("a suspended account is shown as such until it is resumed", async () => {
  addAccount("suspend@example.org");
  expect((await operate(home, ["account", "suspend", "suspend@example.org"])).output).toContain("suspended");
  const list = await operate(home, ["account", "list", "--json"]);
  const listed = () => expect.objectContaining({ email: "suspend@example.org", suspendedAt: expect.any(String) });
  expect(list.json()).toContainEqual(listed());
  expect((await operate(home, ["account", "list"])).output).toMatch(/suspend@example\.org .* suspended/);
  const resumed = await operate(home, ["account", "resume", "suspend@example.org", "--json"]);
  expect(resumed.json().suspendedAt).toBeNull();
});

test("an unknown account is a failure that says where to look", async () => {
  await operate(home, ["invite", "create"]);
  for (const words of [["show"], ["suspend"], ["resume"], ["credit", "1", "--note", "x"]]) {
    const [action = "", ...rest] = words;
    const ran = await operate(home, ["account", action, "nobody@example.org", ...rest]);
    expect(ran).toMatchObject({ code: 1, output: "" });
    expect(ran.errors).toBe(
      "roost: there is no account with the e-mail nobody@example.org; to list accounts: roost account list --data ./data\n",
    );
  }
});

test("the outbox lists mail newest first, with its code", async () => {
  await operate(home, ["invite", "create"]);
  const { store, outbox } = openFoundation(home);
  outbox.append({ to: "a@example.org", subject: "First", text: "1" });
  outbox.append({ to: "a@example.org", subject: "Second", text: "2", code: "12345678" });
  store.close();
  const time = expect.stringMatching(/^\d{4}-.*Z$/);
  expect((await operate(home, ["outbox", "--json"])).json()).toEqual([
    { to: "a@example.org", subject: "Second", text: "2", code: "12345678", createdAt: time },
    { to: "a@example.org", subject: "First", text: "1", code: null, createdAt: time },
  ]);
  expect((await operate(home, ["outbox"])).output).toContain("12345678");
});

test("a sign-in link goes to the public URL, else to the default address, with a note", async () => {
  const plain = await operate(home, ["login-link", "new@example.org"]);
  expect(plain.output).toMatch(/^http:\/\/127\.0\.0\.1:7373\/#link=[\w-]{20,}\n$/);
  expect(plain.errors).toEndWith("No server is running on this folder. Start it first: roost serve --data ./data\n");
  const env = { ROOST_PUBLIC_URL: "https://roost.example/" };
  const named = await operate(home, ["login-link", "new@example.org"], { env });
  expect(named.output).toStartWith("https://roost.example/#link=");
  const token = named.output.trim().split("#link=")[1] ?? "";
  const { store, links } = openFoundation(home);
  expect(links.redeem(token, "127.0.0.1").email).toBe("new@example.org");
  store.close();
});

test("the audit log is verified, and a changed row is reported", async () => {
  const other = makeHome();
  try {
    await operate(other, ["invite", "create"]);
    await operate(other, ["invite", "create"]);
    const { store, clock } = openFoundation(other);
    const log = await createLog("silent", "json");
    await createAuditCheckpoints({ store, clock, log, ...other, key: openHostKeys(other.dataDir).auditKey }).sign();
    expect((await operate(other, ["audit", "--verify", "--json"])).json()).toEqual({
      ok: true,
      brokenAt: null,
      finding: null,
      rows: 2,
      checkpoints: 1,
      since: expect.stringMatching(/^20.*Z$/),
    });
    expect((await operate(other, ["audit", "--verify"])).output).toMatch(
      /is intact: 2 rows since 20\S+, 1 checkpoint\./,
    );
    expect((await operate(other, ["doctor"])).output).toMatch(/audit log intact \(2 rows since 20\S+, 1 checkpoint\)/);
    store.sqlite.run("DROP TRIGGER audit_is_append_only_update");
    store.sqlite.run("UPDATE audit SET subject = 'another' WHERE audit_id = 2");
    store.close();
    const verified = await operate(other, ["audit", "--verify"]);
    expect(verified.code).toBe(1);
    expect(verified.errors).toContain("row 2");
    expect((await operate(other, ["doctor"])).output).toContain("the audit log was changed: row 2");
  } finally {
    other.remove();
  }
});

test("config shows every setting and its source, but no secrets", async () => {
  const other = makeHome();
  try {
    writeFileSync(join(other.dataDir, "roost.toml"), "price_per_hour = '0.05'\n");
    const env = { ROOST_PORT: "8080", ROOST_METRICS_TOKEN: "hush-hush" };
    const ran = await operate(other, ["config", "--json", "--host", "127.0.0.2"], { env });
    const settings = ran.json();
    expect(settings).toContainEqual({ name: "ROOST_PORT", value: "8080", source: "environment" });
    expect(settings).toContainEqual({ name: "ROOST_HOST", value: "127.0.0.2", source: "command line" });
    expect(settings).toContainEqual(
      expect.objectContaining({
        name: "ROOST_PRICE_PER_HOUR",
        value: "0.05",
        source: expect.stringContaining("roost.toml"),
      }),
    );
    expect(ran.output).not.toContain("hush-hush");
    const shown = (await operate(other, ["config"], { env })).output;
    expect(shown).not.toContain("hush-hush");
    expect(shown).toMatch(/^SETTING +VALUE +FROM +MEANING\n/);
    expect(shown).toMatch(/^ROOST_PORT +8080 +environment +the port to listen on/m);
  } finally {
    other.remove();
  }
});

test("an invalid setting ends every operator command with 78 and its name", async () => {
  const commands = ["config", "doctor", "invite list", "account list", "outbox", "audit", "wallet show", "serve"];
  const ran = await Promise.all(
    commands.map((words) => operate(home, words.split(" "), { env: { ROOST_PORT: "99999" } })),
  );
  for (const { code, errors } of ran) {
    expect(code).toBe(78);
    expect(errors).toMatch(/^roost: ROOST_PORT is "99999" \(environment\): expected .*\n$/);
  }
});

test("commands refuse a folder that does not exist, and say what to run; none creates it", async () => {
  const other = makeHome();
  try {
    const mistyped = join(other.folder, "dta");
    const words = ["invite list", "invite create", "account list", "outbox", "audit", "login-link a@example.org"];
    const ran = await Promise.all(words.map((line) => run(other, [...line.split(" "), "--data", mistyped])));
    for (const { code, errors } of ran) {
      expect([code, errors]).toEqual([
        1,
        `roost: there is no Roost data in ${mistyped}; is --data right? The first start creates it: roost serve --data ./dta\n`,
      ]);
    }
    // Also without --data: the invite would be for a folder that nobody serves.
    const unnamed = await run(other, ["invite", "create"]);
    expect([unnamed.code, unnamed.errors]).toEqual([
      1,
      expect.stringMatching(/; is --data right\? .*: roost serve\n$/),
    ]);
    const made = readdirSync(other.folder, { recursive: true }).map(String);
    expect(made.filter((path) => path.startsWith("dta") || path.includes("roost"))).toEqual([]);
    // `npm start` serves ./data, so that is where a newcomer's host is.
    expect((await operate(other, ["invite", "create"])).code).toBe(0);
    const near = await run(other, ["invite", "list"]);
    expect(near.errors).toEndWith("; there is some in ./data: add --data ./data\n");
    expect((await run(other, ["doctor"])).output).toContain("to check that in ./data, add --data ./data");
  } finally {
    other.remove();
  }
});

test("commands refuse a folder of something else, and an empty one except for the first invite and link", async () => {
  const other = makeHome();
  try {
    const refused = await Promise.all(["invite list", "outbox"].map((line) => operate(other, line.split(" "))));
    expect(refused.map(({ code }) => code)).toEqual([1, 1]);
    writeFileSync(join(other.dataDir, "thesis.md"), "# Birds");
    for (const line of ["invite create", "login-link a@example.org"]) {
      expect((await operate(other, line.split(" "))).errors).toStartWith("roost: there is no Roost data in");
    }
    expect(readdirSync(other.dataDir)).toEqual(["thesis.md"]);
    rmSync(join(other.dataDir, "thesis.md"));
    writeFileSync(join(other.dataDir, "roost.toml"), "port = 7000\n");
    expect((await operate(other, ["login-link", "a@example.org"])).output).toStartWith("http://127.0.0.1:7000/#link=");
  } finally {
    other.remove();
  }
});

test("wrong usage exits with 2", async () => {
  const wrong = [
    [],
    ["bogus"],
    ["invite"],
    ["invite", "create", "--uses", "0"],
    ["invite", "create", "--uses", "1.5"],
    ["invite", "create", "--credit", "-1"],
    ["invite", "create", "--credit", "1.0000001"],
    ["invite", "create", "--expires", "7"],
    ["invite", "create", "--expires", "0d"],
    ["invite", "create", "extra"],
    ["invite", "revoke"],
    ["account", "credit", "a@example.org", "0", "--note", "x"],
    ["account", "credit", "a@example.org", "1"],
    ["account", "show", "not an address"],
    ["login-link", "@"],
    ["outbox", "--bogus"],
    ["events", "a", "b", "--after", "x"],
    ["instance", "list", "--url", "ftp://host"],
    ["completion", "tcsh"],
    ["memory", "search", "a", "b", "c", "--limit", "51"],
    ["help", "nope"],
    ["help", "instance", "nope"],
    ["instance", "help", "nope"],
    ["backup", "create", "S3://bucket/roost.tar.zst"],
    ["backup", "create", "s3:/bucket/roost.tar.zst"],
    ["backup", "verify", "gs://bucket/roost.tar.zst"],
  ];
  const ran = await Promise.all(wrong.map((words) => run(home, words)));
  for (const [at, { code, output, errors }] of ran.entries()) {
    expect({ words: wrong[at], code, output }).toEqual({ words: wrong[at], code: 2, output: "" });
    expect(errors).not.toMatch(/^\s+at /m);
    expect(errors).not.toMatch(/^error: /m);
    if (wrong[at]?.length !== 0 && wrong[at]?.[0] !== "invite") expect(errors).toStartWith("roost: ");
  }
});

test("every command has help", async () => {
  const top = (await run(home, ["--help"])).output;
  const names = [...top.matchAll(/^ {2}([a-z][a-z-]+)/gm)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(15);
  const helps = await Promise.all(names.map((name) => run(home, [name, "--help"])));
  for (const { code, output } of helps)
    expect({ code, usage: output.startsWith("Usage: roost") }).toEqual({ code: 0, usage: true });
  expect((await run(home, ["invite", "create", "--help"])).output).toContain("(default: 7d)");
});

test("many commands at once on an empty folder all succeed", async () => {
  const other = makeHome();
  try {
    // Again if another took more than five seconds to create the database, as on a busy machine: nothing was done then.
    const create = async (): ReturnType<typeof operate> => {
      const one = await operate(other, ["invite", "create", "--json"]);
      return /whose server is running|was busy for five seconds/.test(one.errors) ? create() : one;
    };
    const ran = await Promise.all(Array.from({ length: 6 }, create));
    expect(ran.map(({ code, errors }) => ({ code, errors }))).toEqual(ran.map(() => ({ code: 0, errors: "" })));
    expect((await operate(other, ["invite", "list", "--json"])).json()).toHaveLength(6);
  } finally {
    other.remove();
  }
});
