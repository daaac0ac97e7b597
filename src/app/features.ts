import { join } from "node:path";
import { createAuthentication } from "../accounts/authenticate.ts";
import { createCredentialCheck } from "../accounts/credential-check.ts";
import { createKeys } from "../accounts/keys.ts";
import { createRevokedTokens } from "../accounts/revoked-tokens.ts";
import { createTokens } from "../accounts/tokens.ts";
import { createAgents } from "../agents/agents.ts";
import { createArrivals } from "../agents/arrivals.ts";
import { readDefaultFiles } from "../agents/default-files.ts";
import { createWorkspaces } from "../agents/workspaces.ts";
import { createApprovals } from "../approvals/approvals.ts";
import { createApprovalRules } from "../approvals/rules.ts";
import { createExports } from "../bundles/export.ts";
import { createImports } from "../bundles/import.ts";
import type { Config } from "../config.ts";
import { createDelegation } from "../delegation/delegation.ts";
import { createIdempotency } from "../http/idempotency.ts";
import type { Metrics } from "../http/metrics.ts";
import { createPaging } from "../http/paging.ts";
import { createInstances } from "../instances/instances.ts";
import type { Log } from "../lib/log.ts";
import { isOfServer } from "../lib/tool-names.ts";
import { createAccountLimits } from "../limits/account-limits.ts";
import { capModelCalls, capWorkers, type MachineLimits, modelMemoryBytes } from "../limits/machine.ts";
import { createQuotas } from "../limits/quotas.ts";
import { createSliceTurns } from "../limits/slices.ts";
import { createMail } from "../mail/mail.ts";
import type { Memory } from "../memory/memory.ts";
import { createNotes } from "../memory/notes.ts";
import { createRemembering, noteWrites } from "../memory/remembering.ts";
import type { EventLog } from "../messages/events/event-log.ts";
import { createMessaging, type Messaging } from "../messages/messaging.ts";
import { createMeter } from "../meter/meter.ts";
import { mailRunways } from "../meter/runway-notice.ts";
import { createModelChoice, withOwnServers } from "../models/choice.ts";
import { createEngines } from "../models/engines.ts";
import { createPaymentGateway } from "../payments/gateway.ts";
import { createHost, type Host } from "../runtime/host.ts";
import { createAgentTurns } from "../runtime/worker-calls.ts";
import type { probeLevel } from "../sandbox/probe.ts";
import { createSandbox } from "../sandbox/sandbox.ts";
import { mailOfSchedules } from "../schedules/notice.ts";
import { createScheduling, modelForSchedule } from "../schedules/scheduling.ts";
import { openMasterKey } from "../secrets/master-key.ts";
import { createSecrets } from "../secrets/secrets.ts";
import { loadCatalog } from "../skills/catalog.ts";
import { createSkills } from "../skills/skills.ts";
import { AUDIT_RETENTION, createAuditCheckpoints } from "../storage/audit-checkpoints.ts";
import { createRemovals } from "../storage/removals.ts";
import { createCallModel } from "../usage/call-model.ts";
import type { Foundation } from "./foundation.ts";
import { openIdentity } from "./identity.ts";
import { limitDefaults } from "./limit-defaults.ts";
import { createMcp, type McpParts } from "./mcp-servers.ts";
import { createModelCalls } from "./model-calls.ts";
import { measureModelCalls } from "./model-metrics.ts";
import { openAiOptions } from "./openai-options.ts";
import { createOwnServers } from "./own-servers.ts";
import { createTools, type ToolChoice } from "./tools.ts";
import { openTraces } from "./traces.ts";
import { createWeb } from "./web.ts";

/** Awake workers, and likewise runs with their model calls, per account (docs/contract/api.md, Limits). */
const MAX_WORK_PER_ACCOUNT = 64;
const MAX_IDLE_WORKERS_PER_ACCOUNT = 32;

export type Features = Awaited<ReturnType<typeof createFeatures>>;

export interface FeatureOptions {
  tools?: ToolChoice | undefined;
  /** Finds out what locks scripts in. */
  probeSandbox?: typeof probeLevel | undefined;
  /** For whatever a chain's node or the facilitator is asked; longer in tests. */
  paymentDeadlineMs?: number | undefined;
}

/** Builds every room's rules once, from what they need. */
export async function createFeatures(
  config: Config,
  foundation: Foundation,
  log: Log,
  machine: MachineLimits,
  publicUrl: () => string,
  metrics: Pick<Metrics, "measure">,
  { tools, probeSandbox, paymentDeadlineMs }: FeatureOptions,
) {
  const { clock, store, audit, ledger, accounts, outbox } = foundation;
  const { dataDir, minimumLaunchBalance } = config;
  const idleMs = config.idleSeconds * 1000;
  const { hostKeys, recipient } = await openIdentity(foundation, config, log);
  const limits = createAccountLimits(store, limitDefaults(config));
  const quotas = createQuotas(store, limits);
  const removals = createRemovals(store, log);
  const checkpoints = createAuditCheckpoints({
    ...{ store, clock, log, dataDir, key: hostKeys.auditKey },
    retention: { ...AUDIT_RETENTION, maxAgeMs: config.keepAudit ?? Number.POSITIVE_INFINITY },
  });
  const keys = createKeys(store, clock, audit, config.keepKeys);
  const revokedTokens = createRevokedTokens(store, clock);
  const tokens = createTokens(hostKeys, clock, revokedTokens);
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
  const paymentGateway = createPaymentGateway({
    ...{ store, clock, log, audit, ledger, meter, recipient, publicUrl, deadlineMs: paymentDeadlineMs },
    settings: config,
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
      await paymentGateway.invoices.requireBalance(accountId, minimumLaunchBalance, payment);
    },
    quotas,
    removals,
    createFolder: workspaces.createInstanceFolder,
  });
  const masterKey = openMasterKey(dataDir);
  const alsoHidden = (instanceId: string): ReadonlyMap<string, string> => mcp.credentials.values(instanceId);
  const accountOf = (instanceId: string) => instances.find(instanceId)?.accountId ?? instanceId;
  const secrets = createSecrets({ store, clock, audit, masterKey, accountOf, alsoHidden });
  const locked = secrets.countLocked();
  if (locked > 0) {
    log.warn({ locked }, "secrets were stored under another master key and cannot be read; set them again");
  }
  const catalog = loadCatalog((skill, err) => log.error({ err, skill }, "left out a broken skill of the catalog"));
  const toolNames = () => toolbox.tools.map(({ name }) => name);
  const skills = createSkills({ store, clock, catalog, secretNames: secrets.names, toolNames });
  const [turns, sliceTurns] = [createAgentTurns(), createSliceTurns()];
  const web = createWeb({ foundation, log, setting: config.egress, accountOf, secrets, skills, turns, sliceTurns });
  const traces = await openTraces(config, log, web.broker.redactor);
  const ownServers = createOwnServers(store, secrets, accountOf, web.egress);
  const hostModels = createModelChoice(config.models, config.model);
  const modelChoice = withOwnServers(hostModels, ownServers);
  const defaultFiles = readDefaultFiles();
  const mayHaveTool = (name: string) => toolbox.find(name) !== undefined || isOfServer(name);
  const agentParts = { store, clock, instances, workspaces, quotas, removals, defaultFiles, modelChoice, mayHaveTool };
  const agents = createAgents(agentParts);
  const rules = createApprovalRules(store.db, clock);
  const approvals = createApprovals({
    store,
    clock,
    log,
    audit,
    rules,
    accountOf: (instanceId) => instances.find(instanceId)?.accountId,
    resume: (...decision) => conversations.runs.resume(...decision),
    append: (...batch) => void conversations.events.append(...batch),
  });
  const appendEvents: EventLog["append"] = (...batch) => conversations.events.append(...batch);
  const sandbox = createSandbox({ log, accountOf, probe: probeSandbox });
  const spend: Host["spend"] = (...work) => host.spend(...work);
  const delegation = createDelegation({
    ...{ store, clock, log, agents, instances },
    toolboxOf: (instanceId) => toolboxOf(instanceId),
    messaging: () => conversations,
  });
  const together = delegation.port;
  const tellAgents: McpParts["tellAgents"] = (...change) => conversations.aftermath.add(...change);
  const mcp = createMcp({ store, clock, audit, log, web, instances, rules, masterKey, publicUrl, tellAgents });
  const notes = createNotes(store.db, clock);
  const searchMemory: Memory["search"] = (...search) => memory.memory.search(...search);
  const rooms = {
    ...{ store, instances, agents, workspaces, spend, audit, approvals, rules, web, sandbox, skills, together, mcp },
    searchMemory,
    noteWrite: noteWrites(notes),
  };
  const { toolbox, toolboxOf, policy, counts: toolCalls } = createTools({ ...rooms, appendEvents }, tools ?? {});
  const { answerTokens } = config;
  const cacheDir = join(dataDir, "cache");
  const memoryBytes = modelMemoryBytes(config.modelMemory);
  const local = { dataDir, cacheDir, memoryBytes, idleMs, answerTokens, log };
  const engines = createEngines(local, openAiOptions(config, log), hostModels, ownServers);
  const memory = createRemembering({ store, log, limits, dataDir, agents, instances, workspaces, notes, engines });
  const modelCalls = createModelCalls({
    ...{ config, foundation, log, limits, engines, ownServers },
    appendEvent: (agentId, event) => void conversations.events.append(agentId, [event]),
  });
  const host = createHost({
    clock,
    log,
    toolboxOf,
    policy,
    turns,
    callModel: createCallModel({
      ...{ ...modelCalls, clock, engineOf: engines.of },
      onModelCall: measureModelCalls(metrics, hostModels.isNamed),
    }),
    traces,
    idleMs,
    bounds: {
      workers: capWorkers(config.maxAwake, machine),
      workersOfOne: MAX_WORK_PER_ACCOUNT,
      idleOfOne: MAX_IDLE_WORKERS_PER_ACCOUNT,
      runs: capModelCalls(process.env.BUN_CONFIG_MAX_HTTP_REQUESTS),
      runsOfOne: MAX_WORK_PER_ACCOUNT,
    },
    onRoom: () => conversations.runs.serve(),
  });
  const scheduledModel = modelForSchedule(store);
  const conversations: Messaging = createMessaging({
    store,
    clock,
    log,
    instances,
    agents,
    workspaces,
    host,
    removals,
    quotas,
    skills,
    toolsOf: toolboxOf,
    defaultModel: config.model,
    modelFor: ({ originType, originId }) =>
      originType === "schedule" && originId !== null ? scheduledModel(originId) : null,
    boundsOf: delegation.boundsOf,
    engineOf: engines.of,
    recall: memory.recall,
    shortened: memory.shortened,
    callLog: modelCalls.callLog,
    requireBudget: modelCalls.requireBudget,
  });
  conversations.runs.listen(delegation.listener);
  conversations.runs.listen({
    waiting: approvals.request,
    // One that has come to its end has asked for nothing that is open.
    ending: ({ runId }, { kind }) => kind !== "completed" && approvals.cancelOf(runId),
  });
  const scheduling = createScheduling({
    ...{ store, clock, log, agents, workspaces, instances, quotas, modelChoice, messaging: conversations },
    tell:
      config.smtpUrl === null
        ? () => {}
        : mailOfSchedules({ store, clock, log, mail, agents, instances, emailOf, publicUrl }),
  });
  const { schedules } = scheduling;
  const arrivals = createArrivals({ store, clock, workspaces, quotas, removals });
  const { transfer } = conversations;
  const bundleParts = {
    ...{ dataDir, store, clock, log, arrivals, workspaces, transfer, schedules, rules, quotas, catalog, skills },
    ...{ toolNames, mayHaveTool, modelAllowed: modelChoice.allows, turns: sliceTurns },
    ...{ secretNames: secrets.names, secretValues: secrets.values, untrustedFiles: notes.untrustedFiles },
  };
  const exports = createExports(bundleParts);
  const imports = createImports(bundleParts);
  const authenticate = createAuthentication(accounts, keys, tokens);
  const stillValid = createCredentialCheck({ clock, accounts, keys, revokedTokens });
  const idempotency = createIdempotency(store, clock, hostKeys.requestKey);
  const startPage = createPaging(hostKeys.cursorKey);
  const { pepper } = hostKeys;
  const access = { keys, tokens, revokedTokens, pepper, authenticate, stillValid };
  const held = { limits, quotas, removals, mail, ...access, idempotency, startPage, checkpoints };
  const tooling = { toolbox, toolboxOf, toolCalls, mcp, approvals, rules, web, sandbox };
  const run = { traces, catalog, skills, engines, host, ...tooling };
  return {
    ...held,
    ...run,
    modelCalls,
    exports,
    imports,
    meter,
    paymentGateway,
    workspaces,
    instances,
    agents,
    secrets,
    conversations,
    delegation,
    scheduling,
    memory,
  };
}
