import { OUTGOING } from "../limits/outgoing.ts";
import { keyHidden, masked, oneOf, orNull, pairs, shared, text, url, whole, yesOrNo } from "./forms.ts";

const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** The variables that every program with OpenTelemetry reads, as far as they have a meaning here. */
export const traces = {
  otel: {
    endpoint: keyHidden(
      orNull(
        url("OTEL_EXPORTER_OTLP_ENDPOINT", "", "the collector that traces are sent to, at /v1/traces of this URL"),
      ),
    ),
    tracesEndpoint: keyHidden(
      orNull(url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", "the same, as the whole URL: it overrides the other")),
    ),
    headers: masked(pairs("OTEL_EXPORTER_OTLP_HEADERS", "what the collector asks for, such as a key")),
    protocol: shared(
      text("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", "how traces are sent", {
        expects: "http/protobuf",
        form: /\S/,
      }),
    ),
    timeoutMs: shared(
      whole("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000, "how long a batch may take, with its retries", {
        max: OUTGOING.traces.deadlineMs,
        unit: "milliseconds",
      }),
    ),
    serviceName: shared(
      text("OTEL_SERVICE_NAME", "roost", "what this server is called in traces", { expects: "a name", form: /\S/ }),
    ),
    resource: pairs("OTEL_RESOURCE_ATTRIBUTES", "what else describes this server in traces"),
    sampler: shared(oneOf("OTEL_TRACES_SAMPLER", "parentbased_always_on", "which traces are recorded", SAMPLERS)),
    samplerArg: shared(
      text("OTEL_TRACES_SAMPLER_ARG", "1", "the share of traces that `traceidratio` records", {
        expects: "a number from 0 to 1",
        form: /^(0?\.\d+|[01](\.0*)?)$/,
      }),
    ),
    captureContent: shared(
      yesOrNo(
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        "false",
        "also sends what is said to models and tools, and what they say",
      ),
    ),
    exporter: shared(oneOf("OTEL_TRACES_EXPORTER", "otlp", "none turns traces off", ["otlp", "none"])),
    disabled: shared(yesOrNo("OTEL_SDK_DISABLED", "false", "true turns traces off")),
  },
};
