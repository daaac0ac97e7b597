import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthentication } from "../accounts/authenticate.ts";
import { openHostKeys } from "../accounts/host-keys.ts";
import { createKeys } from "../accounts/keys.ts";
import { createTokens } from "../accounts/tokens.ts";
import { createAgents } from "../agents/agents.ts";
import { createWorkspaces, readDefaultFiles } from "../agents/workspaces.ts";
import { createCollecting } from "../billing/collecting.ts";
import { createMeter } from "../billing/meter/meter.ts";
import { mailRunways } from "../billing/meter/runway-notice.ts";
import type { Address } from "../chain/networks.ts";
import { isWellTyped, openWallet } from "../chain/wallet.ts";
import { type Config, ConfigError } from "../config.ts";
import { createIdempotency } from "../http/idempotency.ts";
import { createInstances } from "../instances/instances.ts";
import type { Log } from "../lib/log.ts";
import { createAccountLimits } from "../limits/account-limits.ts";
import { createQuotas } from "../limits/usage.ts";
import { createMail } from "../mail/mail.ts";
import { createConversations } from "../messages/conversations.ts";
import { createEngines } from "../models/engines.ts";
import type { OpenAiOptions } from "../models/openai.ts";
import { createHost } from "../runtime/host.ts";
import { openMasterKey } from "../secrets/master-key.ts";
import { createSecrets } from "../secrets/secrets.ts";
import { loadCatalog } from "../skills/catalog.ts";
import { createSkills } from "../skills/skills.ts";
import { createRemovals } from "../storage/removals.ts";
import { now } from "../tools/now.ts";
import { describe, type Tool } from "../tools/tool.ts";
import type { Foundation } from "./foundation.ts";

const TOOLS: readonly Tool[] = [now];

export type Features = Awaited<ReturnType<typeof createFeatures>>;

/** The rules, each room's built once from what it needs. */
export async function createFeatures(config: Config, foundation: Foundation, log: Log, publicUrl: () => string) {
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
  const limits = createAccountLimits(store, {
    reads: config.readsPerSecond,
    writes: config.writesPerSecond,
    streams: config.maxStreams,
    instances: config.maxInstances,
    agents: config.maxAgents,
    workspaceBytes: config.maxWorkspaceBytes,
  });
  const quotas = createQuotas(store, limits);
  const removals = createRemovals(store, log);
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
  const workspaces = createWorkspaces({ store, clock, log, dataDir, removals });
  const instances = createInstances({
    store,
    clock,
    meter,
    async requireLaunch(accountId, payment) {
      meter.requireUnderLimit(accountId);
      await collecting.invoices.requireBalance(accountId, minimumLaunchBalance, payment);
    },
    quotas,
    removals,
    createFolder: workspaces.createInstanceFolder,
  });
  const defaultFiles = readDefaultFiles();
  const agents = createAgents({ store, clock, instances, workspaces, quotas, removals, defaultFiles });
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
    removals,
    promptSkills: skills.promptSkills,
    tools: TOOLS.map(describe),
    defaultModel: config.model,
    engineOf: engines.of,
  });
  const authenticate = createAuthentication(accounts, keys, tokens);
  const idempotency = createIdempotency(store, clock);
  const held = { limits, removals, mail, keys, tokens, pepper: hostKeys.pepper, authenticate, idempotency };
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

/** Where the binary unpacks what must lie on disk: native libraries and models. */
const cacheFolder = (): string =>
  join(process.env.XDG_CACHE_HOME || (homedir() ? join(homedir(), ".cache") : tmpdir()), "roost");
