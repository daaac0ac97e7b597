import type { Metrics } from "../http/metrics.ts";
import { isServed, nameOf } from "../lib/model-name.ts";
import type { ModelCallFigures } from "../runtime/run-watch.ts";

/** Those that the conventions give (docs/contract/operations.md, Metrics). */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];
const OF_CALL = ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"] as const;

/**
 * The metrics of model calls, by their names in OpenTelemetry's conventions. Only models that the operator has named are
 * told apart: tenants may name others, without end.
 */
export function measureModelCalls(
  { measure }: Pick<Metrics, "measure">,
  isNamed: (model: string) => boolean,
): (call: ModelCallFigures) => void {
  const duration = measure({
    name: "gen_ai_client_operation_duration_seconds",
    help: "Time of model calls",
    labels: [...OF_CALL, "error_type"],
    buckets: SECONDS,
  });
  const first = measure({
    name: "gen_ai_client_operation_time_to_first_chunk_seconds",
    help: "Time until the first text or call of a model's answer",
    labels: OF_CALL,
    buckets: SECONDS,
  });
  const tokens = measure({
    name: "gen_ai_client_token_usage",
    help: "Tokens of model calls, as their servers count them",
    labels: [...OF_CALL, "gen_ai_token_type"],
    buckets: TOKENS,
  });
  return ({ model, seconds, firstSeconds, promptTokens, completionTokens, error }) => {
    const call = {
      gen_ai_operation_name: "chat",
      gen_ai_provider_name: isServed(model) ? "openai" : "roost",
      gen_ai_request_model: isNamed(model) ? nameOf(model) : "_other",
    };
    duration({ ...call, ...(error !== null && { error_type: error }) }, seconds);
    if (firstSeconds !== null) first(call, firstSeconds);
    if (promptTokens !== null) tokens({ ...call, gen_ai_token_type: "input" }, promptTokens);
    if (completionTokens !== null) tokens({ ...call, gen_ai_token_type: "output" }, completionTokens);
  };
}
