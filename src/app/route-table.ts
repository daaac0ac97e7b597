import { accountRoutes } from "../accounts/routes.ts";
import { CODE_LIFE_SECONDS, createSignIn } from "../accounts/sign-in.ts";
import { agentRoutes } from "../agents/routes.ts";
import { toolRoutes } from "../agents/tool-routes.ts";
import { approvalRoutes } from "../approvals/routes.ts";
import { bundleRoutes } from "../bundles/routes.ts";
import type { Config } from "../config.ts";
import type { LastingAnswers } from "../http/lasting-answers.ts";
import type { Route } from "../http/route.ts";
import { instanceRoutes } from "../instances/routes.ts";
import { ledgerRoutes } from "../ledger/routes.ts";
import { signInMail } from "../mail/sign-in-mail.ts";
import { authorizationRoutes } from "../mcp/authorization/routes.ts";
import { mcpServerRoutes } from "../mcp/routes.ts";
import { mcpRoutes } from "../mcp-server/routes.ts";
import { memoryRoutes } from "../memory/routes.ts";
import { conversationRoutes } from "../messages/conversation-routes.ts";
import { messageRoutes } from "../messages/routes.ts";
import { usageRoutes } from "../meter/routes.ts";
import { type HostRouteParts, hostRoutes } from "../models/routes.ts";
import { createEmbed } from "../openai/embeddings.ts";
import { createAgentModels } from "../openai/models.ts";
import { openAiRoutes } from "../openai/routes.ts";
import { createStoredResponses } from "../openai/stored-responses.ts";
import { signedPaymentHeader } from "../payments/facilitator/signed-payment.ts";
import { billingRoutes } from "../payments/routes.ts";
import { scheduleRoutes } from "../schedules/routes.ts";
import { secretRoutes } from "../secrets/routes.ts";
import { skillRoutes } from "../skills/routes.ts";
import { modelUsageRoutes } from "../usage/routes.ts";
import type { Features } from "./features.ts";
import type { Foundation } from "./foundation.ts";

export interface RouteTableParts {
  config: Config;
  foundation: Foundation;
  features: Features;
  lasting: LastingAnswers;
  publicUrl(): string;
  /** How long an MCP client's message waits for its answer. */
  mcpWaitMs: number | undefined;
  /** The URLs by which browsers reach this host: where it listens, and the public one. */
  ownUrls(): string[];
  /** Turns off the idle timeout of a request's connection. */
  keepOpen(request: Request): void;
  offer: HostRouteParts["offer"];
  isFromHere: HostRouteParts["isFromHere"];
}

/** Every route of the API. */
export function createRoutes(parts: RouteTableParts): Route[] {
  const { config, foundation, features, lasting, publicUrl, keepOpen, offer, isFromHere } = parts;
  const { clock, store, audit, accounts, invites, links } = foundation;
  const {
    mail,
    keys,
    tokens,
    revokedTokens,
    pepper,
    meter,
    workspaces,
    instances,
    agents,
    secrets,
    catalog,
    skills,
    conversations,
  } = features;
  function takePayment(accountId: string, request: Request, requestId: string) {
    // A facilitator may take longer than the idle timeout.
    if (signedPaymentHeader(request.headers) !== null) keepOpen(request);
    return features.paymentGateway.takePayment(accountId, request.headers, requestId);
  }
  const sendCode = (to: string, code: string) => {
    const text = signInMail({ code, publicUrl: publicUrl(), expiresInSeconds: CODE_LIFE_SECONDS });
    return mail.send({ to, code, ...text });
  };
  const routes = [
    ...accountRoutes({
      clock,
      accounts,
      signIn: createSignIn({ store, clock, audit, accounts, invites, pepper, sendCode }),
      links,
      tokens,
      keys,
      revokedTokens,
      standingOf: meter.standingOf,
      operatorLimits: features.modelCalls.operatorLimits,
      limitChanged: meter.limitChanged,
      requireInstance: (caller, instanceId) => void instances.get(caller, instanceId),
    }),
    ...instanceRoutes({
      instances,
      pricePerHour: config.pricePerHour,
      costOf: meter.costOf,
      takePayment,
    }),
    ...ledgerRoutes({ db: store.db }),
    ...usageRoutes({ db: store.db, clock, meter }),
    ...modelUsageRoutes({ clock, ...features.modelCalls }),
    ...billingRoutes({ ...config, meter, takePayment, quote: features.paymentGateway.invoices.quote }),
    ...agentRoutes(instances, agents, workspaces),
    ...bundleRoutes({ instances, agents, exports: features.exports, imports: features.imports, lasting, keepOpen }),
    ...toolRoutes(agents, features.toolboxOf),
    ...approvalRoutes({ approvals: features.approvals, rules: features.rules, instances }),
    ...conversationRoutes({ agents, ...conversations, redact: features.web.broker.redact, keepOpen }),
    ...messageRoutes({ clock, agents, ...conversations, lasting, keepOpen }),
    ...memoryRoutes(agents, features.memory.memory),
    ...scheduleRoutes({ agents, ...features.scheduling }),
    ...openAiRoutes({
      clock,
      models: createAgentModels(store.db, agents),
      stored: createStoredResponses({ store, quotas: features.quotas, ...conversations }),
      embed: createEmbed(features.engines.embed),
      ...conversations,
      isTool: ({ instanceId, tools }, name) => features.toolboxOf(instanceId).has(name, tools),
      lasting,
      keepOpen,
    }),
    ...hostRoutes({ model: config.model, offer, isFromHere }),
    ...skillRoutes(catalog, skills, instances),
    ...secretRoutes(secrets, instances),
    ...authorizationRoutes({ instances, ...features.mcp, keepOpen }),
    ...mcpServerRoutes({ instances, servers: features.mcp.servers, policy: features.web.egress.policy }),
  ];
  const { runs } = conversations;
  return [
    ...routes,
    ...mcpRoutes({ routes, agents, runs, lasting, keepOpen, ownUrls: parts.ownUrls, waitMs: parts.mcpWaitMs }),
  ];
}
