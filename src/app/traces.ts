import type { Config } from "../config.ts";
import type { Log } from "../lib/log.ts";
import type { Traces } from "../traces/traces.ts";
import { VERSION } from "./version.ts";

/** Null, and nothing is loaded, without a collector. `redactor` takes the secrets of an instance out of what was said. */
export async function openTraces(
  { otel }: Pick<Config, "otel">,
  log: Pick<Log, "warn">,
  redactor: (instanceId: string) => Promise<(text: string) => Promise<string>>,
): Promise<Traces | null> {
  const url = otel.tracesEndpoint ?? (otel.endpoint === null ? null : `${otel.endpoint.replace(/\/+$/, "")}/v1/traces`);
  if (url === null || otel.disabled || otel.exporter === "none") return null;
  const { createTraces } = await import("../traces/otel.ts");
  return createTraces({
    url,
    headers: otel.headers,
    timeoutMs: otel.timeoutMs,
    serviceName: otel.serviceName,
    version: VERSION,
    resource: otel.resource,
    ratio: ratioOf(otel),
    redactor: otel.captureContent ? redactor : null,
    onFailure: (reason) => log.warn({ reason }, "traces could not be sent to the collector, and are lost"),
  });
}

function ratioOf({ sampler, samplerArg }: Config["otel"]): number {
  if (sampler.endsWith("always_off")) return 0;
  return sampler.endsWith("traceidratio") ? Number(samplerArg) : 1;
}
