import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import packageFile from "../package.json" with { type: "json" };
import { createAuthentication } from "./accounts/authenticate.ts";
import { openHostKeys } from "./accounts/host-keys.ts";
import { createKeys } from "./accounts/keys.ts";
import { accountRoutes } from "./accounts/routes.ts";
import { CODE_LIFE_SECONDS, createSignIn, pruneSignInCodes } from "./accounts/sign-in.ts";
import { createTokens } from "./accounts/tokens.ts";
import { createAgents } from "./agents/agents.ts";
import { agentRoutes } from "./agents/routes.ts";
import { createWorkspaces, readDefaultFiles } from "./agents/workspaces.ts";
import { createCollecting } from "./billing/collecting.ts";
import { signedPaymentHeader } from "./billing/facilitator/signed-payment.ts";
import { createMeter } from "./billing/meter/meter.ts";
import { createMetering, type Metering } from "./billing/meter/metering.ts";
import { mailRunways } from "./billing/meter/runway-notice.ts";
import { billingRoutes } from "./billing/routes.ts";
import type { Address } from "./chain/networks.ts";
import { isWellTyped, openWallet } from "./chain/wallet.ts";
import { type Config, ConfigError } from "./config.ts";
import { consolePages } from "./console/pages.ts";
import { figuresOf } from "./figures.ts";
import type { Foundation } from "./foundation.ts";
import { startHousekeeping } from "./housekeeping.ts";
import { createIdempotency } from "./http/idempotency.ts";
import { type Listener, listen } from "./http/listener.ts";
import { createMetrics } from "./http/metrics.ts";
import { openApiDocument } from "./http/openapi.ts";
import type { Route } from "./http/route.ts";
import { createFetch } from "./http/server.ts";
import { statusPages } from "./http/status-pages.ts";
import { createInstances } from "./instances/instances.ts";
import { instanceRoutes } from "./instances/routes.ts";
import type { Log } from "./lib/log.ts";
import { createMail } from "./mail/mail.ts";
import { signInMail } from "./mail/sign-in-mail.ts";
import { createConversations } from "./messages/conversations.ts";
import { messageRoutes } from "./messages/routes.ts";
import { createEngines } from "./models/engines.ts";
import type { OpenAiOptions } from "./models/openai.ts";
import { createHost } from "./runtime/host.ts";
import { openMasterKey } from "./secrets/master-key.ts";
import { secretRoutes } from "./secrets/routes.ts";
import { createSecrets } from "./secrets/secrets.ts";
import { loadCatalog } from "./skills/catalog.ts";
import { skillRoutes } from "./skills/routes.ts";
import { createSkills } from "./skills/skills.ts";
import { now } from "./tools/now.ts";
import { describe, type Tool } from "./tools/tool.ts";

export const VERSION = packageFile.version;

/** The running appliance. */
export interface App {
  url: string;
  routes: readonly Route[];
  metering: Pick<Metering, "tick">;
  /** Stops taking requests, ends streams, closes what is open. Runs in progress go on at the next start. */
  stop(): Promise<void>;
}

const TOOLS: readonly Tool[] = [now];

/** Config → parts → running appliance. The data folder is open and locked already; whoever opened it closes it. */
export async function startApp(config: Config, foundation: Foundation, log: Log): Promise<App> {
  const { store } = foundation;
  // The listener needs the routes and a few of them need it; requests come only once both are there.
  const later: Later = {};
  const rooms = await createRooms(config, foundation, log, later);
  const { workspaces, instances, conversations, host, engines } = rooms;
  let ready = true;
  const routes = createRoutes(config, foundation, rooms, later);
  const metrics = createMetrics();
  const figures = figuresOf({ ...rooms, db: store.db, hub: conversations.hub });
  for (const figure of figures) metrics.add(figure);
  const addressOf = (request: Request) => later.listener?.addressOf(request) ?? "unknown";
  const status = {
    version: VERSION,
    isReady: () => ready,
    metrics,
    metricsToken: config.metricsToken,
    addressOf,
    openApi: () => openApiDocument(routes, VERSION),
  };
  const fetch = createFetch(routes, [...consolePages(), ...statusPages(status)], {
    authenticate(request) {
      store.readTogether();
      return rooms.authenticate({
        authorization: request.headers.get("authorization"),
        apiKey: request.headers.get("x-api-key"),
        address: () => addressOf(request),
        isRead: request.method === "GET",
      });
    },
    idempotency: rooms.idempotency,
    commit: store.transaction,
    commitSoon: (work) => store.commitSoon(work, "full"),
    addressOf,
    onAnswer({ method, path }, code, startedMs, requestId, error) {
      metrics.countRequest(method, path, code, (performance.now() - startedMs) / 1000);
      const fields = { requestId, method, path, status: code };
      // A model that fails and an instance that is not running are answers, not faults of the host.
      if (error?.code === "internal_error") log.error({ err: error.cause ?? error, ...fields }, "request failed");
      else log.debug(fields, "request");
    },
  });

  workspaces.recover((instanceId) => instances.find(instanceId) !== undefined);
  const { host: hostname, port, publicUrl, trustProxy } = config;
  const listener = listen({ hostname, port, publicUrl, trustProxy }, fetch);
  later.listener = listener;
  conversations.runs.recover();
  // The meter begins once there is something to be had for the money.
  rooms.meter.resume(instances.allRunning());
  const metering = createMetering(rooms.meter, store, foundation.clock, log);
  metering.run();
  rooms.collecting.run();
  setTimeout(() => void metrics.load(), 1_000).unref();
  const housekeeping = startHousekeeping(housekeepingTasks(foundation, rooms), log);

  return {
    url: listener.url,
    routes,
    metering,
    async stop() {
      ready = false;
      housekeeping.stop();
      conversations.hub.endAll();
      await listener.stop();
      await rooms.collecting.stop();
      await metering.stop();
      host.close();
      await engines.close();
    },
  };
}

type Rooms = Awaited<ReturnType<typeof createRooms>>;
interface Later {
  listener?: Listener;
}

const publicUrlOf = ({ publicUrl }: Config, later: Later): string => publicUrl ?? later.listener?.url ?? "";

/** The rules, each room's built once from what it needs. */
async function createRooms(config: Config, foundation: Foundation, log: Log, later: Later) {
  const { clock, store, audit, ledger, accounts, outbox } = foundation;
  const { dataDir, minimumLaunchBalance } = config;
  const idleMs = config.idleSeconds * 1000;
  const hostKeys = openHostKeys(dataDir);
  const recipient = await openWallet(dataDir, config.wallet as Address | null);
  if (config.wallet !== null && !(await isWellTyped(recipient))) {
    throw new ConfigError(
      `ROOST_WALLET is "${recipient}": expected an address whose capitals are its checksum (EIP-55)`,
    );
  }
  const keys = createKeys(store, clock, audit);
  const tokens = createTokens(hostKeys, clock);
  const meter = createMeter({
    store,
    clock,
    ledger,
    pricePerHour: config.pricePerHour,
    termsOf(accountId) {
      const { monthlyLimit, suspendedAt } = accounts.get(accountId);
      return { monthlyLimit, suspended: suspendedAt !== null };
    },
  });
  const publicUrl = () => publicUrlOf(config, later);
  const collecting = createCollecting({
    store,
    clock,
    log,
    audit,
    ledger,
    meter,
    recipient,
    settings: config,
    publicUrl,
  });
  const mail = createMail({ smtpUrl: config.smtpUrl, from: config.mailFrom }, outbox);
  const emailOf = (accountId: string) => accounts.get(accountId).email;
  if (config.smtpUrl !== null) mailRunways({ meter, store, clock, log, mail, emailOf, publicUrl });
  const workspaces = createWorkspaces(store, dataDir);
  const instances = createInstances({
    store,
    clock,
    meter,
    async requireLaunch(accountId, payment) {
      meter.requireUnderLimit(accountId);
      await collecting.invoices.requireBalance(accountId, minimumLaunchBalance, payment);
    },
    createFolder: workspaces.createInstanceFolder,
    removeFolder: workspaces.removeInstanceFolder,
  });
  const agents = createAgents({ store, clock, instances, workspaces, defaultFiles: readDefaultFiles() });
  const secrets = createSecrets({ store, clock, audit, masterKey: openMasterKey(dataDir) });
  const locked = secrets.countLocked();
  if (locked > 0) {
    log.warn({ locked }, "secrets were stored under another master key and cannot be read; store them anew");
  }
  const catalog = loadCatalog((skill, err) => log.error({ err, skill }, "left out a broken built-in skill"));
  const skills = createSkills({ store, clock, catalog, secretNames: secrets.names });
  const engines = createEngines({ cacheDir: cacheFolder(), idleMs, log }, openAiOptions(config, log));
  const host = createHost({ clock, log, tools: TOOLS, engineOf: engines.of, idleMs });
  const conversations = createConversations({
    store,
    clock,
    log,
    instances,
    agents,
    workspaces,
    host,
    promptSkills: skills.promptSkills,
    tools: TOOLS.map(describe),
    defaultModel: config.model,
    engineOf: engines.of,
  });
  const authenticate = createAuthentication(accounts, keys, tokens);
  const idempotency = createIdempotency(store, clock);
  const held = { mail, keys, tokens, pepper: hostKeys.pepper, authenticate, idempotency };
  const run = { catalog, skills, engines, host };
  return { ...held, ...run, meter, collecting, workspaces, instances, agents, secrets, conversations };
}

function openAiOptions({ openAiBaseUrl, openAiApiKey }: Config, log: Log): OpenAiOptions | null {
  if (openAiBaseUrl === null) return null;
  return {
    baseUrl: openAiBaseUrl,
    apiKey: openAiApiKey ?? undefined,
    log: (retry) => log.warn(retry, "model server: trying again"),
  };
}

function createRoutes(config: Config, foundation: Foundation, rooms: Rooms, later: Later): Route[] {
  const { clock, store, audit, accounts, invites, links } = foundation;
  const { mail, keys, tokens, pepper, meter, workspaces, instances, agents, secrets, catalog, skills, conversations } =
    rooms;
  function takePayment(accountId: string, request: Request) {
    // A facilitator may take longer than a connection may be silent.
    if (signedPaymentHeader(request.headers) !== null) later.listener?.keepOpen(request);
    return rooms.collecting.takePayment(accountId, request.headers);
  }
  const sendCode = (to: string, code: string) => {
    const publicUrl = publicUrlOf(config, later);
    return mail.send({ to, code, ...signInMail({ code, publicUrl, expiresInSeconds: CODE_LIFE_SECONDS }) });
  };
  return [
    ...accountRoutes({
      clock,
      accounts,
      signIn: createSignIn({ store, clock, audit, accounts, invites, pepper, sendCode }),
      links,
      tokens,
      keys,
      standingOf: meter.standingOf,
      limitChanged: meter.limitChanged,
      requireInstance: (caller, instanceId) => void instances.get(caller, instanceId),
    }),
    ...instanceRoutes({
      instances,
      pricePerHour: config.pricePerHour,
      costOf: meter.costOf,
      takePayment,
    }),
    ...billingRoutes({ ...config, db: store.db, clock, meter, takePayment, quote: rooms.collecting.invoices.quote }),
    ...agentRoutes(instances, agents, workspaces),
    ...messageRoutes({ agents, ...conversations, keepOpen: (request) => later.listener?.keepOpen(request) }),
    ...skillRoutes(catalog, skills, instances),
    ...secretRoutes(secrets, instances),
  ];
}

const housekeepingTasks = (
  { store, outbox, clock }: Foundation,
  { idempotency, conversations, collecting }: Rooms,
) => ({
  idempotency: idempotency.prune,
  payments: collecting.prune,
  signInCodes: () => pruneSignInCodes(store, clock),
  outbox: outbox.prune,
  async events() {
    for (let after: string | null = ""; after !== null; ) {
      const from: string = after;
      // A commit for each hundred agents, and requests in between.
      after = await store.commitSoon(() => conversations.events.prune(from, 100), "process");
    }
  },
});

/** Where the binary unpacks what must lie on disk: native libraries and models. */
const cacheFolder = (): string =>
  join(process.env.XDG_CACHE_HOME || (homedir() ? join(homedir(), ".cache") : tmpdir()), "roost");
