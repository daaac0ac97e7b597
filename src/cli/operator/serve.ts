import { readFileSync, write } from "node:fs";
import { type Foundation, openFoundation } from "../../app/foundation.ts";
import { bindAddress, startApp } from "../../app/start.ts";
import type { Config } from "../../config.ts";
import { isEveryAddress } from "../../http/reachable-url.ts";
import { everyStep } from "../../lib/every-step.ts";
import { moreFileThreads } from "../../lib/file-threads.ts";
import { createLog, type Log, logWritten } from "../../lib/log.ts";
import type { Outbox } from "../../mail/outbox.ts";
import { LOCAL_MODEL } from "../../models/local-models.ts";
import { lockDataFolder, requireNoServer } from "../../storage/lock.ts";
import { makePrivate } from "../../storage/private-folder.ts";
import { colours, lineOf, say, shortMoney } from "../output.ts";
import { roost } from "./advice.ts";
import { readCheckedConfig, requireOwnFolder, type ServeSettings } from "./data-folder.ts";

const STOP_WITHIN_SECONDS = 10;
/** Once what a start leaves for later is done. */
const SETTLED_MS = 2_000;
/** The account that the sign-in link shown at each start signs in to. */
const OWNER = "owner@roost.local";
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** No command depends on these: where a server listens, it reads in `server.json`. */
const OF_SERVING = new Set(["ROOST_DATA_DIR", "ROOST_HOST", "ROOST_PORT", "ROOST_LOG_LEVEL", "ROOST_LOG_FORMAT"]);

/**
 * `roost serve`: runs until SIGTERM or SIGINT, then shuts down cleanly and exits 0 (docs/contract/operations.md,
 * Signals).
 */
export async function serve(options: ServeSettings): Promise<void> {
  moreFileThreads();
  const { config, settings, digests } = await readCheckedConfig(options);
  const log = await createLog(config.logLevel, config.logFormat);
  goOnAfterErrors(log);
  requireOwnFolder(config);
  requireNoServer(config.dataDir);
  // Before the start: as a container's first process, it would ignore a signal that nothing waits for.
  const signalled = waitForSignal();
  const listener = bindAddress(config, log);
  for (const change of makePrivate(config.dataDir)) log.warn(change);
  const lock = lockDataFolder(config.dataDir);
  const foundation = openFoundation(config);
  const onTerminal = process.stdout.isTTY;
  const outbox = onTerminal ? showCodes(foundation.outbox) : foundation.outbox;
  const app = await startApp(listener, config, { ...foundation, outbox }, log);
  const url = config.publicUrl ?? app.url;
  const ofEnvironment = settings.filter(({ name, source }) => source === "environment" && !OF_SERVING.has(name));
  lock.announce(url, Object.fromEntries(ofEnvironment.map(({ name }) => [name, digests.get(name) ?? ""])));
  const everywhere = isEveryAddress(config.host) ? ", and every other address of this machine" : "";
  log.info({ event: "listening", url: app.url, dataDir: config.dataDir }, `listening on ${app.url}${everywhere}`);
  if (onTerminal) greet(url, foundation, config);
  else logHowToSignIn(log, config);
  void warnOfServers(config, log);
  // What the start leaves behind would stay: a server that does nothing collects no garbage.
  setTimeout(() => {
    Bun.gc(true);
    // The build makes the JIT wait for the end of the start (scripts/compile.ts).
    Bun.unsafe.setJITPolicy(1);
  }, SETTLED_MS).unref();
  const damage = await Promise.race([signalled, app.damage]);
  // As at a start that finds it: what is read from a damaged database cannot be relied on.
  if (damage) log.error(damage.message);
  log.info({ event: "stopping" }, "stopping");
  // Second by second, so that those in which the whole machine was suspended do not count.
  let seconds = 0;
  setInterval(() => ++seconds === STOP_WITHIN_SECONDS && process.exit(1), 1_000).unref();
  const partsStopped = await app.stop();
  const closed = await everyStep([foundation.store.close, lock.release], (err) =>
    log.error({ err }, "the data folder could not be closed properly"),
  );
  log.info({ event: "stopped" }, "stopped");
  await logWritten(log);
  process.exit(damage || !partsStopped || !closed ? 1 : 0);
}

/** Says now what users would notice first: a model server or mail server that does not work. It need not be up yet. */
async function warnOfServers(config: Config, log: Log): Promise<void> {
  const isEmbedded = config.model === LOCAL_MODEL;
  if (isEmbedded && config.smtpUrl === null) return;
  const { checkMail, checkModel } = await import("./check-host.ts");
  const checks = [...(isEmbedded ? [] : [checkModel(config)]), ...(config.smtpUrl === null ? [] : [checkMail(config)])];
  for (const { ok, detail, mend } of await Promise.all(checks)) if (!ok) log.warn(`${detail}; ${mend}`);
}

/** Shows a person how to get in. Secrets are shown on a terminal only, never logged. */
function greet(url: string, { accounts, invites, links }: Foundation, config: Config): void {
  const { dataDir, inviteCredit } = config;
  const first = invites.none() && accounts.list(null, 1).length === 0;
  const link = `${url}/#link=${links.create(OWNER, inviteCredit)}`;
  say("");
  say("  ", colours.bold("Roost is running."));
  say("");
  say("  Open    ", colours.cyan(link));
  say("          ", colours.dim(`signs you in as ${OWNER}, once, within an hour`));
  if (config.publicUrl === null && isEveryAddress(config.host)) {
    say("          ", colours.dim("from another machine, use this one's name or address instead of localhost"));
  }
  if (first) {
    const { code } = invites.create({ uses: 1, credit: inviteCredit, lifeMs: WEEK_MS });
    const credit = `for one account, with ${shortMoney(inviteCredit)} USDC of credit`;
    say("  Invite  ", colours.bold(code), "  ", colours.dim(credit));
  } else say("  Invite  ", roost("invite create", dataDir), "  ", colours.dim("lets somebody else in"));
  say(`  Data    ${dataDir}`);
  say("");
}

/** Without a terminal, only the commands are logged: a log must hold nothing that signs somebody in. */
function logHowToSignIn(log: Log, { dataDir }: Config): void {
  const link = roost("login-link EMAIL", dataDir, { elsewhere: true });
  const invite = roost("invite create", dataDir, { elsewhere: true });
  log.info(`to get a sign-in link: ${link}; to invite somebody: ${invite}`);
}

/** Without SMTP, sign-in codes are shown on the terminal too (docs/contract/operations.md, Settings). */
const showCodes = (outbox: Outbox): Outbox => ({
  ...outbox,
  append(mail) {
    outbox.append(mail);
    const { to, code, subject } = mail;
    const line = lineOf("  ", colours.dim("Mail to"), ` ${to}  `, colours.bold(code ?? subject));
    // Nobody waits for a terminal that is held. If it has gone, the code is in the outbox.
    write(1, `${line}\n`, () => undefined);
  },
});

/**
 * Logs errors that nobody has caught, such as those of timers, which would else be source text on standard error. It goes on:
 * what a change left half done was rolled back, and an end would interrupt everybody for what has failed for one.
 */
function goOnAfterErrors(log: Log): void {
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (err: unknown) => log.error({ err }, "an unexpected error; the host goes on"));
  }
}

function waitForSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once("SIGTERM", () => resolve());
    process.once("SIGINT", () => resolve());
    // The terminal is closed; `nohup` starts a program so that it outlives that.
    if (!ignoresHangUp()) process.once("SIGHUP", () => resolve());
  });
}

/** Whether this process was started so. Where that cannot be told, it is left as it was. */
function ignoresHangUp(): boolean {
  try {
    const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1];
    return ignored === undefined || Number.parseInt(ignored.slice(-1), 16) % 2 === 1;
  } catch {
    return true;
  }
}
