import type { Config } from "../config.ts";
import type { AccountLimits } from "../limits/account-limits.ts";

/** The limits of an account for which the operator has changed nothing (docs/contract/operations.md, Settings). */
export const limitDefaults = (config: Config): AccountLimits => ({
  reads: config.readsPerSecond,
  writes: config.writesPerSecond,
  streams: config.maxStreams,
  instances: config.maxInstances,
  agents: config.maxAgents,
  workspaceBytes: config.maxWorkspaceBytes,
  tokensPerDay: config.tokensPerDay,
  tokensPerMonth: config.tokensPerMonth,
});
