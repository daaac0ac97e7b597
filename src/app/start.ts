import packageFile from "../../package.json" with { type: "json" };
import type { Config } from "../config.ts";
import { consolePages } from "../console/pages.ts";
import { createAdmission } from "../http/admission.ts";
import { createIncomingBodies } from "../http/incoming-bodies.ts";
import { createLastingAnswers } from "../http/lasting-answers.ts";
import { type Listener, listen } from "../http/listener.ts";
import { createMetrics } from "../http/metrics.ts";
import { openApiDocument } from "../http/openapi.ts";
import { isFromThisMachine } from "../http/request.ts";
import type { Route } from "../http/route.ts";
import { createFetch } from "../http/server.ts";
import { statusPages } from "../http/status-pages.ts";
import { secondsOf } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createAccountRates } from "../limits/account-rates.ts";
import { readMachineLimits, streamsThatFit } from "../limits/machine.ts";
import { createTurnShares } from "../limits/turn-shares.ts";
import { createWindows } from "../limits/windows.ts";
import type { MeterTimer } from "../meter/meter-timer.ts";
import { createMeterTimer } from "../meter/meter-timer.ts";
import { OLLAMA_URL } from "../models/ollama.ts";
import { referencePages } from "../reference/pages.ts";
import { clearingPlan } from "./clearing.ts";
import { createFeatures } from "./features.ts";
import type { Foundation } from "./foundation.ts";
import { gaugesOf } from "./gauges.ts";
import { housekeepingTasks, startHousekeeping } from "./housekeeping.ts";
import { modelOffer } from "./model-offer.ts";
import { createRoutes } from "./route-table.ts";

export const VERSION = packageFile.version;

/** Event streams of the host, where it has the files for them (api.md section 1, Limits). */
const MAX_STREAMS = 20_000;

/** Of one account's requests in one turn of the event loop, while others may wait: half a dozen small reads. */
const TURN_SHARE_MS = 1;

/** The running appliance. */
export interface App {
  url: string;
  routes: readonly Route[];
  meterTimer: Pick<MeterTimer, "tick">;
  /** Once all is done that requests left to be done behind them: clearing away, and comparing workspaces with the disk. */
  settled(): Promise<void>;
  /** Stops taking requests, ends streams, closes what is open. Runs in progress go on at the next start. */
  stop(): Promise<void>;
}

/**
 * Config → parts → running appliance. The data folder is open and locked already; whoever opened it closes it. The socket
 * is bound first: a port that is taken costs nothing, and every part can know the address. At `ollamaUrl` the console looks
 * for a model to offer.
 */
export async function startApp(
  config: Config,
  foundation: Foundation,
  log: Log,
  ollamaUrl: string = OLLAMA_URL,
): Promise<App> {
  const { host: hostname, port, publicUrl, trustProxy } = config;
  const listener = listen({ hostname, port, publicUrl, trustProxy, log });
  try {
    return await startBehind(listener, config, foundation, log, ollamaUrl);
  } catch (error) {
    await listener.stop();
    throw error;
  }
}

async function startBehind(
  listener: Listener,
  config: Config,
  foundation: Foundation,
  log: Log,
  ollamaUrl: string,
): Promise<App> {
  const { store } = foundation;
  const machine = readMachineLimits();
  const { addressOf, socketAddressOf, keepOpen } = listener;
  const publicUrl = () => config.publicUrl ?? listener.url;
  const features = await createFeatures(config, foundation, log, machine, publicUrl);
  const { workspaces, instances, conversations, host, engines, paymentGateway, meter, removals } = features;
  const seconds = secondsOf(foundation.clock);
  let ready = true;
  const lasting = createLastingAnswers({
    total: streamsThatFit(MAX_STREAMS, machine),
    limitOf: (accountId) => features.limits.of(accountId).streams,
    stillValid: features.stillValid,
    beforeLooks: store.readTogether,
  });
  const routes = createRoutes({
    config,
    foundation,
    features,
    lasting,
    publicUrl,
    keepOpen,
    offer: modelOffer(config, foundation.clock, ollamaUrl),
    isFromHere: (request) => isFromThisMachine(request, socketAddressOf(request)),
  });
  const metrics = createMetrics();
  for (const gauge of gaugesOf({ ...features, db: store.db, hub: conversations.hub })) metrics.add(gauge);
  const status = {
    version: VERSION,
    isReady: () => ready,
    metrics,
    metricsToken: config.metricsToken,
    socketAddressOf,
    openApi: () => openApiDocument(routes, VERSION),
  };
  /** Told once a minute: who fills the host shall not fill its log too. */
  const fullness = createWindows(seconds, { seconds: 60, most: 1 });
  const fetch = createFetch(
    routes,
    [...consolePages({ mailed: config.smtpUrl !== null }), ...referencePages(), ...statusPages(status)],
    {
      admission: createAdmission({
        authenticate(request) {
          store.readTogether();
          return features.authenticate({
            authorization: request.headers.get("authorization"),
            apiKey: request.headers.get("x-api-key"),
            address: () => addressOf(request),
          });
        },
        accountRates: createAccountRates(features.limits, seconds),
        addressOf,
        addressRequests: config.addressRequests,
        addressRefusals: config.addressRefusals,
        now: seconds,
      }),
      bodies: createIncomingBodies({ now: seconds }),
      turns: createTurnShares({ mostMs: TURN_SHARE_MS }),
      idempotency: features.idempotency,
      startPage: features.startPage,
      commitSoon: (work) => store.commitSoon(work, "full"),
      addressOf,
      onAnswer({ method, path }, code, startedMs, requestId, error) {
        metrics.countRequest(method, path, code, (performance.now() - startedMs) / 1000);
        const fields = { requestId, method, path, status: code };
        // A model that fails and an instance that is not running are answers, not faults of the host. So is one that is full.
        if (error?.status === 503 && error.cause === undefined) {
          if (error.code === "internal_error" && fullness.count(error.message) === 0) log.warn(fields, error.message);
        } else if (error?.code === "internal_error")
          log.error({ err: error.cause ?? error, ...fields }, "request failed");
        else log.debug(fields, "request");
      },
    },
  );

  workspaces.recover();
  conversations.recover();
  listener.answerWith(fetch);
  // The meter begins once there is something to be had for the money.
  meter.resume(instances.allRunning());
  const meterTimer = createMeterTimer(meter, store, foundation.clock, log);
  meterTimer.run();
  paymentGateway.run();
  setTimeout(() => void metrics.load(), 1_000).unref();
  removals.run(clearingPlan(store, features));
  workspaces.reindexing.run();
  const strays = workspaces.removeStrays(instances.isKnown);
  const housekeeping = startHousekeeping(housekeepingTasks(foundation, features), log);

  return {
    url: listener.url,
    routes,
    meterTimer,
    async settled() {
      await strays;
      await workspaces.settled();
      await workspaces.reindexing.settled();
      await conversations.aftermath.settled();
      await removals.settled();
    },
    async stop() {
      ready = false;
      housekeeping.stop();
      conversations.hub.endAll();
      lasting.stop();
      await listener.stop();
      await workspaces.settled();
      await strays;
      await workspaces.reindexing.stop();
      await conversations.aftermath.stop();
      await removals.stop();
      await paymentGateway.stop();
      await meterTimer.stop();
      host.close();
      await engines.close();
    },
  };
}
