import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import packageFile from "../package.json" with { type: "json" };
import { createAuthentication } from "./accounts/authenticate.ts";
import { openHostKeys } from "./accounts/host-keys.ts";
import { createKeys } from "./accounts/keys.ts";
import { accountRoutes } from "./accounts/routes.ts";
import { CODE_LIFE_SECONDS, createSignIn } from "./accounts/sign-in.ts";
import { createTokens } from "./accounts/tokens.ts";
import { createAgents } from "./agents/agents.ts";
import { agentRoutes } from "./agents/routes.ts";
import { createWorkspaces, readDefaultFiles } from "./agents/workspaces.ts";
import { createInvoices } from "./billing/invoices.ts";
import { openWallet } from "./chain/wallet.ts";
import type { Config } from "./config.ts";
import { consolePages } from "./console/pages.ts";
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
  /** Stops taking requests, ends streams, closes what is open. Runs in progress go on at the next start. */
  stop(): Promise<void>;
}

const TOOLS: readonly Tool[] = [now];

/** Config → parts → running appliance. The data folder is open and locked already; whoever opened it closes it. */
export async function startApp(config: Config, foundation: Foundation, log: Log): Promise<App> {
  const { clock, store, audit, ledger, accounts, invites, links, outbox } = foundation;
  const hostKeys = openHostKeys(config.dataDir);
  const recipient = await openWallet(config.dataDir, config.wallet as `0x${string}` | null);
  const keys = createKeys(store, clock, audit);
  const tokens = createTokens(hostKeys, clock);
  const mail = createMail({ smtpUrl: config.smtpUrl, from: config.mailFrom }, outbox);
  const { minimumTopUp, networks, minimumLaunchBalance } = config;
  const invoices = createInvoices({ store, clock, ledger, recipient, networks, minimumTopUp });
  const workspaces = createWorkspaces(store, config.dataDir);
  const instances = createInstances({
    store,
    clock,
    requireLaunch: (accountId) => invoices.requireBalance(accountId, minimumLaunchBalance),
    createFolder: workspaces.createInstanceFolder,
    removeFolder: workspaces.removeInstanceFolder,
  });
  const agents = createAgents({ store, clock, instances, workspaces, defaultFiles: readDefaultFiles() });
  const secrets = createSecrets({ store, clock, audit, masterKey: openMasterKey(config.dataDir) });
  const locked = secrets.countLocked();
  if (locked > 0)
    log.warn({ locked }, "secrets were stored under another master key and cannot be read; store them anew");
  const catalog = loadCatalog((skill, err) => log.error({ err, skill }, "left out a broken built-in skill"));
  const skills = createSkills({ store, clock, catalog, secretNames: secrets.names });

  const engines = createEngines(
    { cacheDir: cacheFolder(), idleMs: config.idleSeconds * 1000, log },
    config.openAiBaseUrl === null
      ? null
      : {
          baseUrl: config.openAiBaseUrl,
          apiKey: config.openAiApiKey ?? undefined,
          log: (retry) => log.warn(retry, "model server: trying again"),
        },
  );
  const host = createHost({ clock, log, tools: TOOLS, engineOf: engines.of, idleMs: config.idleSeconds * 1000 });
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

  const idempotency = createIdempotency(store, clock);
  const metrics = createMetrics();
  const signIn = createSignIn({
    store,
    clock,
    audit,
    accounts,
    invites,
    pepper: hostKeys.pepper,
    sendCode: (to, code) =>
      mail.send({ to, code, ...signInMail({ code, publicUrl: publicUrl(), expiresInSeconds: CODE_LIFE_SECONDS }) }),
  });
  const authenticate = createAuthentication(accounts, keys, tokens);
  // The listener needs the routes and a few of them need it; requests come only once both are there.
  let listener: Listener | undefined;
  const publicUrl = () => config.publicUrl ?? listener?.url ?? "";
  const addressOf = (request: Request) => listener?.addressOf(request) ?? "unknown";
  let ready = true;

  const routes: Route[] = [
    ...accountRoutes({
      clock,
      accounts,
      signIn,
      links,
      tokens,
      keys,
      balanceOf: ledger.balanceOf,
      spentThisMonth: () => 0n,
      requireInstance: (caller, instanceId) => void instances.get(caller, instanceId),
    }),
    ...instanceRoutes(instances, config.pricePerHour),
    ...agentRoutes(instances, agents, workspaces),
    ...messageRoutes({ agents, ...conversations, keepOpen: (request) => listener?.keepOpen(request) }),
    ...skillRoutes(catalog, skills, instances),
    ...secretRoutes(secrets, instances),
  ];
  const pages = [
    ...consolePages(),
    ...statusPages({
      version: VERSION,
      isReady: () => ready,
      metrics,
      metricsToken: config.metricsToken,
      addressOf,
      openApi: () => openApiDocument(routes, VERSION),
    }),
  ];
  const fetch = createFetch(routes, pages, {
    authenticate(request) {
      store.readTogether();
      return authenticate({
        authorization: request.headers.get("authorization"),
        apiKey: request.headers.get("x-api-key"),
        address: () => addressOf(request),
        isRead: request.method === "GET",
      });
    },
    idempotency,
    commit: store.transaction,
    commitSoon: (work) => store.commitSoon(work, "full"),
    addressOf,
    onAnswer({ method, path }, status, startedMs, requestId, error) {
      metrics.countRequest(method, path, status, (performance.now() - startedMs) / 1000);
      // A model that fails and an instance that is not running are answers, not faults of the host.
      if (error?.code === "internal_error")
        log.error({ err: error.cause ?? error, requestId, method, path, status }, "request failed");
      else log.debug({ requestId, method, path, status }, "request");
    },
  });
  metrics.gauge("roost_instances_running", "Instances that are running", instances.countRunning);
  metrics.gauge("roost_workers_awake", "Instances whose worker is awake", host.awake);
  metrics.gauge("roost_event_streams", "Event streams that are open", conversations.hub.openStreams);

  workspaces.recover((instanceId) => instances.find(instanceId) !== undefined);
  listener = listen(
    { hostname: config.host, port: config.port, publicUrl: config.publicUrl, trustProxy: config.trustProxy },
    fetch,
  );
  conversations.runs.recover();
  setTimeout(() => void metrics.load(), 1_000).unref();
  const housekeeping = startHousekeeping(
    {
      idempotency: idempotency.prune,
      signInCodes: signIn.prune,
      outbox: outbox.prune,
      async events() {
        for (let after: string | null = ""; after !== null; ) {
          const from: string = after;
          // A commit for each hundred agents, and requests in between.
          after = await store.commitSoon(() => conversations.events.prune(from, 100), "process");
        }
      },
    },
    log,
  );

  return {
    url: listener.url,
    routes,
    async stop() {
      ready = false;
      housekeeping.stop();
      conversations.hub.endAll();
      await listener?.stop();
      host.close();
      await engines.close();
    },
  };
}

/** Where the binary unpacks what must lie on disk: native libraries and models. */
const cacheFolder = (): string =>
  join(process.env.XDG_CACHE_HOME || (homedir() ? join(homedir(), ".cache") : tmpdir()), "roost");
