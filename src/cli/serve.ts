import { mkdirSync } from "node:fs";
import pc from "picocolors";
import { type App, startApp } from "../app.ts";
import { ConfigError, loadConfig } from "../config.ts";
import { type Foundation, openFoundation } from "../foundation.ts";
import { createLog, type Log } from "../lib/log.ts";
import { formatMoney } from "../lib/money.ts";
import { lockDataFolder } from "../storage/lock.ts";

export interface ServeOptions {
  data?: string;
  host?: string;
  port?: string;
}

/** Exit code for settings that cannot be used (sysexits' EX_CONFIG). */
const BAD_CONFIG = 78;
const STOP_WITHIN_MS = 10_000;
/** The account that the first sign-in link opens. */
const OWNER = "owner@roost.local";
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** `roost serve`: runs until SIGTERM or SIGINT, then settles and exits 0 (operations.md). */
export async function serve(options: ServeOptions): Promise<void> {
  const { config } = readConfig(options);
  const log = createLog(config.logLevel, config.logFormat);
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
  const lock = lockDataFolder(config.dataDir);
  const foundation = openFoundation(config);
  const first = foundation.invites.none() && foundation.accounts.list(null, 1).length === 0;
  const app = await startApp(config, foundation, log);
  log.info({ event: "listening", url: app.url, dataDir: config.dataDir }, `listening on ${app.url}`);
  if (first) welcome(app, foundation, log, config);
  await untilSignalled();
  log.info({ event: "stopping" }, "stopping");
  const timer = setTimeout(() => process.exit(1), STOP_WITHIN_MS);
  timer.unref();
  await app.stop();
  foundation.store.close();
  lock.release();
  log.info({ event: "stopped" }, "stopped");
  process.exit(0);
}

function readConfig({ data, host, port }: ServeOptions) {
  try {
    return loadConfig(process.env, {
      ...(data === undefined ? {} : { ROOST_DATA_DIR: data }),
      ...(host === undefined ? {} : { ROOST_HOST: host }),
      ...(port === undefined ? {} : { ROOST_PORT: port }),
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(`roost: ${error.message}`);
    process.exit(BAD_CONFIG);
  }
}

/** What a person needs at the first start. Secrets are shown on a terminal only, never logged. */
function welcome(
  app: App,
  { invites, links }: Foundation,
  log: Log,
  config: ReturnType<typeof readConfig>["config"],
): void {
  if (!process.stdout.isTTY) {
    log.info("first start: make an invite with `roost invite create`, or a sign-in link with `roost login-link EMAIL`");
    return;
  }
  const { code } = invites.create({ uses: 1, credit: config.inviteCredit, lifeMs: WEEK_MS });
  const token = links.create(OWNER, config.inviteCredit);
  const url = config.publicUrl ?? app.url;
  console.log(
    [
      "",
      `  ${pc.bold("Roost is running.")}`,
      "",
      `  Open    ${pc.cyan(`${url}/#link=${token}`)}  ${pc.dim("signs you in, once, within the hour")}`,
      `  Invite  ${pc.bold(code)}  ${pc.dim(`for one account, with ${formatMoney(config.inviteCredit)} USDC of credit`)}`,
      `  Data    ${config.dataDir}`,
      "",
    ].join("\n"),
  );
}

function untilSignalled(): Promise<void> {
  return new Promise((resolve) => {
    process.once("SIGTERM", () => resolve());
    process.once("SIGINT", () => resolve());
  });
}
