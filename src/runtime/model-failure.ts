import type { Log } from "../lib/log.ts";
import { ModelError } from "../models/engine.ts";
import type { ModelFailure } from "./protocol.ts";

/** The failure as the tenant may see it; what only the operator may know goes into the log, under the run's id. */
export function failureOf(
  thrown: unknown,
  log: Log,
  whose: { accountId: string; instanceId: string; agentId: string; runId: string; models: readonly string[] },
): ModelFailure {
  if (thrown instanceof ModelError) {
    const { kind, message, detail, overflow, cause, retryAt } = thrown;
    if (overflow) return { kind, message, overflow };
    // Limits do what they are for.
    if (kind === "budget_exceeded" || kind === "forbidden") {
      return { kind, message, ...(retryAt !== undefined && { retryAt }) };
    }
    log.warn({ ...whose, kind, detail: detail ?? message, cause: causeOf(cause) }, "a model failed");
    return {
      kind,
      message: detail === undefined ? message : `${message} The host's log has the cause under ${whose.runId}.`,
    };
  }
  log.error({ err: thrown, ...whose }, "a model engine failed unexpectedly");
  return { kind: "internal", message: "the model engine failed unexpectedly" };
}

const causeOf = (cause: unknown): string | undefined => (cause instanceof Error ? cause.message : undefined);
