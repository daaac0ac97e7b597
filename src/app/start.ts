import type { Approvals } from "../approvals/approvals.ts";
import type { Config } from "../config.ts";
import type { Delegation } from "../delegation/delegation.ts";
import { createAdmission } from "../http/admission.ts";
import { allowOrigins } from "../http/cross-origin.ts";
import { createIncomingBodies } from "../http/incoming-bodies.ts";
import { createLastingAnswers } from "../http/lasting-answers.ts";
import { type Listener, listen } from "../http/listener.ts";
import { createMetrics } from "../http/metrics.ts";
import { isFromThisMachine } from "../http/request.ts";
import type { Route } from "../http/route.ts";
import { createFetch } from "../http/server.ts";
import { answerWhileStopping } from "../http/status-pages.ts";
import { secondsOf } from "../lib/clock.ts";
import { everyStep } from "../lib/every-step.ts";
import type { Log } from "../lib/log.ts";
import { createAccountRates } from "../limits/account-rates.ts";
import { createFairTurns } from "../limits/fair-turns.ts";
import { createFixedWindows } from "../limits/fixed-windows.ts";
import { capStreams, readMachineLimits } from "../limits/machine.ts";
import type { Runs } from "../messages/runs/runs.ts";
import type { MeterTimer } from "../meter/meter-timer.ts";
import { createMeterTimer } from "../meter/meter-timer.ts";
import { OLLAMA, type OllamaPlace } from "../models/ollama.ts";
import type { Payments } from "../payments/payments.ts";
import type { ScheduleTimer } from "../schedules/schedule-timer.ts";
import { checkInBackground } from "../storage/background-check.ts";
import { createRetention } from "../storage/retention.ts";
import { createWriteCheck } from "../storage/write-check.ts";
import { clearingPlan } from "./clearing.ts";
import { createFeatures, type FeatureOptions } from "./features.ts";
import type { Foundation } from "./foundation.ts";
import { gaugesOf } from "./gauges.ts";
import { type Housekeeping, housekeepingTasks, startHousekeeping } from "./housekeeping.ts";
import { livesOf } from "./lives.ts";
import { modelOffer } from "./model-offer.ts";
import { createPages } from "./pages.ts";
import { createRoutes } from "./route-table.ts";
import { VERSION } from "./version.ts";

/** Event streams on the host, if it may open that many files (docs/contract/api.md, Limits). */
const MAX_STREAMS = 20_000;

/** How much of a turn of the event loop one account's requests may use while others wait: half a dozen small reads. */
const TURN_SHARE_MS = 1;
/** How much of the thread's time they may use while others make requests too; agents have a share of their own. */
const THREAD_SHARE = 0.35;

/** How often approvals, and runs that others wait for, are looked for whose time is over. */
const EXPIRY_MS = 30_000;
const PROBE_AFTER_MS = 1_000;

/** The running server. */
export interface App {
  url: string;
  routes: readonly Route[];
  meterTimer: Pick<MeterTimer, "tick">;
  scheduleTimer: Pick<ScheduleTimer, "tick" | "stop">;
  payments: Pick<Payments, "tick">;
  /** Decides about what runs wait for. */
  runs: Pick<Runs, "resume" | "listen">;
  approvals: Pick<Approvals, "expireDue">;
  housekeeping: Pick<Housekeeping, "tidy">;
  /** Resolves if the database turns out to be damaged, with what to do. */
  damage: Promise<Error>;
  delegation: Pick<Delegation, "expireDue">;
  /** Resolves when the background work left by requests is done: clearing, and comparing workspaces with the disk. */
  settled(): Promise<void>;
  /**
   * Stops accepting requests, ends streams, closes everything. Runs in progress continue at the next start. Resolves with
   * false if a part of it failed, which is logged: the others are done all the same.
   */
  stop(): Promise<boolean>;
}

export interface AppOptions extends FeatureOptions {
  /** Where the console looks for a model to offer. */
  ollama?: OllamaPlace | undefined;
  /** How long an MCP client's message waits for its answer. */
  mcpWaitMs?: number | undefined;
  /** For tests, whose clock may be anywhere: nothing is removed for its age unless they say so. */
  tidiesOnlyWhenTold?: boolean | undefined;
}

/**
 * Binds the configured address, before anything in the data folder is created or changed. Until the app runs, every
 * request is asked to retry. Throws, saying how to fix it, if that fails.
 */
export const bindAddress = (
  { host: hostname, port, publicUrl, trustProxy }: Config,
  log: Pick<Log, "warn" | "error">,
): Listener => listen({ hostname, port, publicUrl, trustProxy, openFiles: readMachineLimits().openFiles, log });

/** Config → parts → running server. The caller has opened and locked the data folder, and closes it. */
export async function startApp(
  listener: Listener,
  config: Config,
  foundation: Foundation,
  log: Log,
  options: AppOptions = {},
): Promise<App> {
  try {
    return await startOn(listener, config, foundation, log, options);
  } catch (error) {
    await listener.stop();
    throw error;
  }
}

async function startOn(
  listener: Listener,
  config: Config,
  foundation: Foundation,
  log: Log,
  { ollama = OLLAMA, mcpWaitMs, tidiesOnlyWhenTold, ...options }: AppOptions,
): Promise<App> {
  const { store } = foundation;
  const machine = readMachineLimits();
  const { addressOf, socketAddressOf, keepOpen } = listener;
  const publicUrl = () => config.publicUrl ?? listener.url;
  const metrics = createMetrics();
  const features = await createFeatures(config, foundation, log, machine, publicUrl, metrics, options);
  const { sandbox, workspaces, instances, conversations, host, engines, paymentGateway, meter, removals } = features;
  engines.begin();
  const seconds = secondsOf(foundation.clock);
  const writes = createWriteCheck(store);
  const accountRates = createAccountRates(features.limits, seconds);
  const lasting = createLastingAnswers({
    total: capStreams(MAX_STREAMS, machine),
    limitOf: (accountId) => features.limits.of(accountId).streams,
    stillValid: features.stillValid,
    charge: ({ accountId }, bytes) => accountRates.chargeRead(accountId, bytes, 0),
    beforeChecks: store.readTogether,
  });
  const routes = createRoutes({
    config,
    foundation,
    features,
    lasting,
    publicUrl,
    mcpWaitMs,
    ownUrls: () => [listener.url, ...(config.publicUrl === null ? [] : [config.publicUrl])],
    keepOpen,
    offer: modelOffer(config, foundation.clock, ollama),
    isFromHere: (request) => isFromThisMachine(request, socketAddressOf(request)),
  });
  const retention = createRetention(store, foundation.clock);
  const lives = livesOf(foundation, config, features);
  const { backupEvery: everyMs } = config;
  const backupParts = { config, clock: foundation.clock, log, mail: features.mail };
  // Imported only if some are scheduled.
  const backups = everyMs === null ? null : (await import("./backups.ts")).runBackups({ ...backupParts, everyMs });
  for (const gauge of gaugesOf({
    ...features,
    retention,
    lives,
    backups,
    db: store.db,
    hub: conversations.hub,
    dataDir: config.dataDir,
  }))
    metrics.add(gauge);
  const status = {
    version: VERSION,
    refusal: writes.refusal,
    sandboxLevel: async () => (await sandbox.probe()).level,
    metrics,
    metricsToken: config.metricsToken,
    socketAddressOf,
    // Made and loaded only when somebody asks for it.
    openApi: async () => (await import("../http/openapi.ts")).openApiDocument(routes, VERSION),
  };
  /** Logged once a minute: a client that fills the host must not fill its log too. */
  const fullness = createFixedWindows(seconds, { seconds: 60, max: 1 });
  const fetch = createFetch(routes, createPages(config, foundation, features, keepOpen, publicUrl, status), {
    admission: createAdmission({
      authenticate(request) {
        store.readTogether();
        return features.authenticate({
          authorization: request.headers.get("authorization"),
          apiKey: request.headers.get("x-api-key"),
          address: () => addressOf(request),
        });
      },
      accountRates,
      addressOf,
      addressRequests: config.addressRequests,
      addressRefusals: config.addressRefusals,
      now: seconds,
    }),
    stillValid: features.stillValid,
    bodies: createIncomingBodies({ now: seconds }),
    turns: createFairTurns({ maxMs: TURN_SHARE_MS, share: THREAD_SHARE, beforeLater: store.readTogether }),
    idempotency: features.idempotency,
    startPage: features.startPage,
    commits: {
      shared: (work, accountId) => store.commitSoon(work, "full", accountId),
      alone: async (work) => store.transaction(work),
    },
    addressOf,
    traces: features.traces,
    onAnswer({ route: { method, path }, requestId, accountId, runId }, code, startedMs, error) {
      metrics.countRequest(method, path, code, (performance.now() - startedMs) / 1000);
      const whose = { accountId: accountId ?? undefined, runId: runId ?? undefined };
      const fields = { requestId, ...whose, method, path, status: code, reason: error?.reason };
      writes.failed(error?.cause);
      // A failing model, a stopped instance and a full host are answers, not faults of the server.
      if (error?.status === 503 && error.cause === undefined) {
        if (error.code === "internal_error" && fullness.count(error.message) === 0) log.warn(fields, error.message);
      } else if (error?.code === "internal_error")
        log.error({ err: error.cause ?? error, ...fields }, "request failed");
      else log.debug(fields, "request");
    },
    onPageFailure: (about, error) => log.error({ err: error.cause, ...about }, "request failed"),
  });

  workspaces.recover();
  features.imports.recover();
  features.modelCalls.callLog.recover();
  conversations.recover();
  listener.answerWith(allowOrigins(config.corsOrigins, fetch));
  // Metering starts only when instances can be used.
  meter.resume(instances.allRunning());
  const meterTimer = createMeterTimer(meter, store, foundation.clock, log);
  meterTimer.run();
  paymentGateway.run();
  features.modelCalls.callLog.run();
  features.scheduling.timer.run();
  // Requests that wait already come before what only tidies up.
  await new Promise((resolve) => setTimeout(resolve));
  removals.run(clearingPlan(store, features));
  workspaces.reindexing.run();
  features.memory.run();
  const strays = workspaces
    .removeStrays(instances.isKnown)
    .catch((err: unknown) => log.error({ err }, "folders of instances that were never created could not be removed"));
  const expiry = setInterval(() => {
    const tried = Promise.all([features.approvals.expireDue(), features.delegation.expireDue()]);
    tried.catch((err: unknown) =>
      log.error({ err }, "what has waited too long could not be ended; the host will retry it"),
    );
  }, EXPIRY_MS);
  expiry.unref();
  // It takes a core for a moment, which the first requests should have. Whoever asks earlier starts it.
  const probing = setTimeout(() => void sandbox.probe(), PROBE_AFTER_MS);
  probing.unref();
  const check = checkInBackground(config.dataDir, log);
  const housekeeping = startHousekeeping(housekeepingTasks(features, retention, lives), log, tidiesOnlyWhenTold);

  return {
    url: listener.url,
    routes,
    meterTimer,
    scheduleTimer: features.scheduling.timer,
    payments: paymentGateway.payments,
    runs: conversations.runs,
    approvals: features.approvals,
    housekeeping,
    damage: check.damage,
    delegation: features.delegation,
    async settled() {
      await features.imports.settled();
      await strays;
      await workspaces.settled();
      await workspaces.reindexing.settled();
      await conversations.aftermath.settled();
      await removals.settled();
      await features.memory.settled();
    },
    stop() {
      // First: a service manager ends a backup's process at the same moment, which must count as this stop.
      const backupsStopped = backups?.stop();
      listener.answerWith(allowOrigins(config.corsOrigins, answerWhileStopping(VERSION)));
      clearInterval(expiry);
      clearTimeout(probing);
      housekeeping.stop();
      const asking = [
        check.stop,
        retention.stop,
        features.scheduling.timer.stop,
        conversations.hub.endAll,
        lasting.stop,
      ];
      const working = [workspaces.stop, features.imports.settled, () => strays, workspaces.reindexing.stop];
      const leftBehind = [conversations.aftermath.stop, features.memory.stop, removals.stop, paymentGateway.stop];
      const agents = [meterTimer.stop, host.close, features.mcp.connections.closeAll, features.web.close];
      const below = [sandbox.close, engines.close, features.modelCalls.callLog.close, () => features.traces?.close()];
      const last = [() => backupsStopped, listener.stop];
      const steps = [...asking, listener.drain, ...working, ...leftBehind, ...agents, ...below, ...last];
      return everyStep(steps, (err) => log.error({ err }, "a part of the stop failed; the others follow"));
    },
  };
}
