import { type Foundation, openFoundation } from "../../app/foundation.ts";
import { type App, startApp } from "../../app/start.ts";
import type { Config } from "../../config.ts";
import { createLog } from "../../lib/log.ts";
import type { Outbox } from "../../mail/outbox.ts";
import { lockDataFolder } from "../../storage/lock.ts";
import { closeToOthers } from "../../storage/private-folder.ts";
import { Failure } from "../failure.ts";
import { colours, say, shortMoney } from "../output.ts";
import { readConfig, type ServeSettings } from "./data-folder.ts";

const STOP_WITHIN_MS = 10_000;
/** The account that the first sign-in link opens. */
const OWNER = "owner@roost.local";
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** `roost serve`: runs until SIGTERM or SIGINT, then settles and exits 0 (operations.md). */
export async function serve(options: ServeSettings): Promise<void> {
  const { config } = readConfig(options);
  const log = await createLog(config.logLevel, config.logFormat);
  for (const change of closeToOthers(config.dataDir)) log.warn(change);
  const lock = lockDataFolder(config.dataDir);
  const foundation = openFoundation(config);
  const first = foundation.invites.none() && foundation.accounts.list(null, 1).length === 0;
  const onTerminal = process.stdout.isTTY;
  const outbox = onTerminal ? showingCodes(foundation.outbox) : foundation.outbox;
  const app = await startApp(config, { ...foundation, outbox }, log).catch((error) => explainStart(error, config));
  const signalled = untilSignalled();
  log.info({ event: "listening", url: app.url, dataDir: config.dataDir }, `listening on ${app.url}`);
  if (first && onTerminal) welcome(app, foundation, config);
  else if (first) {
    log.info("first start: make an invite with `roost invite create`, or a sign-in link with `roost login-link EMAIL`");
  }
  await signalled;
  log.info({ event: "stopping" }, "stopping");
  const timer = setTimeout(() => process.exit(1), STOP_WITHIN_MS);
  timer.unref();
  await app.stop();
  foundation.store.close();
  lock.release();
  log.info({ event: "stopped" }, "stopped");
  process.exit(0);
}

function explainStart(error: unknown, { host, port }: Config): never {
  switch (error instanceof Error && "code" in error ? error.code : undefined) {
    case "EADDRINUSE":
      throw new Failure(`port ${port} of ${host} is taken`, "give another with --port, 0 picks a free one");
    case "EACCES":
      throw new Failure(`this user may not listen on port ${port} of ${host}`, "give another with --port");
    default:
      throw error;
  }
}

/** What a person needs at the first start. Secrets are shown on a terminal only, never logged. */
function welcome(app: App, { invites, links }: Foundation, config: Config): void {
  const { code } = invites.create({ uses: 1, credit: config.inviteCredit, lifeMs: WEEK_MS });
  const token = links.create(OWNER, config.inviteCredit);
  const link = `${(config.publicUrl ?? app.url).replace(/\/$/, "")}/#link=${token}`;
  const credit = `for one account, with ${shortMoney(config.inviteCredit)} USDC of credit`;
  say("");
  say("  ", colours.bold("Roost is running."));
  say("");
  say("  Open    ", colours.cyan(link), "  ", colours.dim("signs you in, once, within the hour"));
  say("  Invite  ", colours.bold(code), "  ", colours.dim(credit));
  say(`  Data    ${config.dataDir}`);
  say("");
}

/** A host without SMTP shows sign-in codes on its terminal too (operations.md, Settings). */
const showingCodes = (outbox: Outbox): Outbox => ({
  ...outbox,
  append(mail) {
    outbox.append(mail);
    const { to, code, subject } = mail;
    say("  ", colours.dim("Mail to"), ` ${to}  `, colours.bold(code ?? subject));
  },
});

function untilSignalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once("SIGTERM", () => resolve());
    process.once("SIGINT", () => resolve());
  });
}
