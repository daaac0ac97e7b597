import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import { isServed, nameOf } from "../lib/model-name.ts";
import { cut, type Hide, inputMessages, outputMessages, systemInstructions } from "./content.ts";
import { createSending, type SendingOptions } from "./sending.ts";
import type { ModelTrace, RunTrace, ToolTrace, TracedMessage, TracedModelCall, TracedRun, Traces } from "./traces.ts";

/**
 * The conventions that names and values of attributes follow (docs/contract/operations.md, Traces): the last release that
 * has those of `gen_ai` and of HTTP in one schema.
 */
const SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0";

export interface TraceOptions extends SendingOptions {
  serviceName: string;
  version: string;
  /** What else describes this server. */
  resource: Record<string, string>;
  /** The share of traces that are recorded, from 0 to 1. */
  ratio: number;
  /** Records what was said, without the instance's secrets; null records no content. */
  redactor: ((instanceId: string) => Promise<Hide>) | null;
}

/** Requests whose runs have not begun. */
const MAX_CAUSES = 10_000;
const MAX_NAME = 200;
const {
  ATTR_ERROR_TYPE: ERROR_TYPE,
  ATTR_GEN_AI_OPERATION_NAME: OPERATION,
  ATTR_GEN_AI_PROVIDER_NAME: PROVIDER,
  ATTR_GEN_AI_REQUEST_MODEL: REQUEST_MODEL,
} = conventions;

/** Traces by OpenTelemetry. This file is loaded only if there is a collector. */
export function createTraces(options: TraceOptions): Traces {
  const { redactor } = options;
  const sending = createSending(options);
  /** The trace of a run has the run's id, so that it is found by it, also after a restart. */
  let nextTraceId: string | null = null;
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({
        ...options.resource,
        [conventions.ATTR_SERVICE_NAME]: options.serviceName,
        [conventions.ATTR_SERVICE_VERSION]: options.version,
      }),
    ),
    sampler: new ParentBasedSampler({ root: samplerOf(options.ratio) }),
    spanProcessors: [sending.processor],
    spanLimits: { linkCountLimit: 2, attributeCountLimit: 64 },
    idGenerator: { generateTraceId: () => nextTraceId ?? randomHex(16), generateSpanId: () => randomHex(8) },
  });
  const tracer = provider.getTracer("roost", options.version, { schemaUrl: SCHEMA_URL });
  /** The request that each run was caused by, until it begins. */
  const causes = new Map<string, SpanContext>();

  function request({ method, route, requestId, traceparent }: Parameters<Traces["request"]>[0]) {
    const sender = traceparent === null ? null : spanContextOf(traceparent);
    const span = tracer.startSpan(
      `${method} ${route}`,
      {
        kind: SpanKind.SERVER,
        attributes: {
          [conventions.ATTR_HTTP_REQUEST_METHOD]: method,
          [conventions.ATTR_HTTP_ROUTE]: route,
          [conventions.ATTR_URL_SCHEME]: "http",
          "roost.request.id": requestId,
        },
      },
      ROOT_CONTEXT,
    );
    return {
      caused(runId: string) {
        if (!span.isRecording()) return;
        const [oldest] = causes.keys();
        // One whose run never began.
        if (causes.size >= MAX_CAUSES && oldest !== undefined) causes.delete(oldest);
        causes.set(runId, span.spanContext());
      },
      end({ status, accountId, runId, error }: Parameters<ReturnType<Traces["request"]>["end"]>[0]) {
        span.setAttribute(conventions.ATTR_HTTP_RESPONSE_STATUS_CODE, status);
        // Only of somebody who is known, and never as the parent: strangers decide neither what is recorded nor where.
        if (accountId !== null) {
          span.setAttribute("roost.account.id", accountId);
          if (sender !== null) span.addLink({ context: sender });
        }
        if (runId !== null) span.setAttribute("roost.run.id", runId);
        if (status >= 500) fail(span, error ?? String(status));
        span.end();
      },
    };
  }

  function run(of: TracedRun): RunTrace {
    const cause = causes.get(of.runId);
    causes.delete(of.runId);
    nextTraceId = of.runId.slice(-32);
    const span = tracer.startSpan(
      "invoke_agent",
      {
        kind: SpanKind.INTERNAL,
        attributes: {
          [OPERATION]: conventions.GEN_AI_OPERATION_NAME_VALUE_INVOKE_AGENT,
          ...modelAttributes(of.model),
          [conventions.ATTR_GEN_AI_AGENT_ID]: of.agentId,
          [conventions.ATTR_GEN_AI_CONVERSATION_ID]: of.conversationId,
          "roost.run.id": of.runId,
          "roost.instance.id": of.instanceId,
          "roost.account.id": of.accountId,
        },
        links: cause === undefined ? [] : [{ context: cause }],
      },
      ROOT_CONTEXT,
    );
    nextTraceId = null;
    const inside = trace.setSpan(ROOT_CONTEXT, span);
    // For each call anew: a secret may have been stored meanwhile.
    const hiding = redactor === null ? null : () => redactor(of.instanceId);
    const total = { prompt: 0, completion: 0 };
    return {
      model: (call) => modelCall(inside, of.model, call, hiding, total),
      tool: (call) => toolCall(inside, call, hiding),
      end(outcome, isFailure) {
        span.setAttributes({ ...usage(total.prompt, total.completion), "roost.run.outcome": outcome });
        if (isFailure) fail(span, outcome);
        span.end();
      },
    };
  }

  function modelCall(
    inside: Context,
    model: string,
    call: TracedModelCall,
    hiding: Hiding | null,
    total: { prompt: number; completion: number },
  ): ModelTrace {
    const attributes: Attributes = {
      [OPERATION]: conventions.GEN_AI_OPERATION_NAME_VALUE_CHAT,
      ...modelAttributes(model),
    };
    if (call.maxTokens !== undefined) attributes[conventions.ATTR_GEN_AI_REQUEST_MAX_TOKENS] = call.maxTokens;
    if (call.temperature !== undefined) attributes[conventions.ATTR_GEN_AI_REQUEST_TEMPERATURE] = call.temperature;
    const name = `chat ${String(attributes[REQUEST_MODEL])}`;
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, inside);
    return {
      traceparent: span.isRecording() ? traceparentOf(span.spanContext()) : undefined,
      end(answer) {
        total.prompt += answer.promptTokens ?? 0;
        total.completion += answer.completionTokens ?? 0;
        span.setAttributes(usage(answer.promptTokens, answer.completionTokens));
        if (answer.finish !== null) span.setAttribute(conventions.ATTR_GEN_AI_RESPONSE_FINISH_REASONS, [answer.finish]);
        if (answer.model !== null)
          span.setAttribute(conventions.ATTR_GEN_AI_RESPONSE_MODEL, cut(answer.model, MAX_NAME));
        const { address, port } = answer.server ?? {};
        if (address !== undefined) span.setAttribute(conventions.ATTR_SERVER_ADDRESS, cut(address, MAX_NAME));
        if (port !== undefined) span.setAttribute(conventions.ATTR_SERVER_PORT, port);
        if (answer.firstMs !== null) {
          span.setAttribute(conventions.ATTR_GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, answer.firstMs / 1000);
        }
        if (answer.error !== null) fail(span, answer.error);
        const messages: readonly TracedMessage[] = call.messages.flat();
        endWith(span, hiding, async (hide) => ({
          [conventions.ATTR_GEN_AI_SYSTEM_INSTRUCTIONS]: await systemInstructions(messages, hide),
          [conventions.ATTR_GEN_AI_INPUT_MESSAGES]: await inputMessages(messages, hide),
          [conventions.ATTR_GEN_AI_OUTPUT_MESSAGES]: await outputMessages(answer, hide),
        }));
      },
    };
  }

  function toolCall(
    inside: Context,
    { id, name, input }: Parameters<RunTrace["tool"]>[0],
    hiding: Hiding | null,
  ): ToolTrace {
    const span = tracer.startSpan(
      `execute_tool ${name}`,
      {
        kind: SpanKind.INTERNAL,
        attributes: {
          [OPERATION]: conventions.GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL,
          [conventions.ATTR_GEN_AI_TOOL_NAME]: name,
          [conventions.ATTR_GEN_AI_TOOL_TYPE]: "function",
          [conventions.ATTR_GEN_AI_TOOL_CALL_ID]: cut(id, MAX_NAME),
        },
      },
      inside,
    );
    return {
      end({ output, isError }) {
        span.setAttribute("roost.tool.outcome", output === null ? "waiting" : isError ? "failed" : "done");
        if (isError) fail(span, "tool_error");
        endWith(span, hiding, async (hide) => ({
          [conventions.ATTR_GEN_AI_TOOL_CALL_ARGUMENTS]: cut(await hide(input)),
          ...(output !== null && { [conventions.ATTR_GEN_AI_TOOL_CALL_RESULT]: cut(await hide(output)) }),
        }));
      },
    };
  }

  return { request, run, figures: sending.figures, close: sending.close };
}

type Hiding = () => Promise<Hide>;

/** Ends a span; with content, as soon as no secret is in it any more. */
function endWith(span: Span, hiding: Hiding | null, content: (hide: Hide) => Promise<Attributes>): void {
  if (hiding === null || !span.isRecording()) {
    span.end();
    return;
  }
  const endedAt = Date.now();
  hiding()
    .then(content)
    .then((attributes) => span.setAttributes(attributes))
    // Without its content, then.
    .catch(() => undefined)
    .finally(() => span.end(endedAt));
}

function fail(span: Span, type: string): void {
  span.setAttribute(ERROR_TYPE, type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The API that is spoken: an OpenAI-compatible server's provider is not known. */
const modelAttributes = (model: string): Attributes => ({
  [PROVIDER]: isServed(model) ? conventions.GEN_AI_PROVIDER_NAME_VALUE_OPENAI : "roost",
  [REQUEST_MODEL]: cut(nameOf(model), MAX_NAME),
});

const usage = (prompt: number | null, completion: number | null): Attributes => ({
  ...(prompt !== null && { [conventions.ATTR_GEN_AI_USAGE_INPUT_TOKENS]: prompt }),
  ...(completion !== null && { [conventions.ATTR_GEN_AI_USAGE_OUTPUT_TOKENS]: completion }),
});

function samplerOf(ratio: number): Sampler {
  if (ratio <= 0) return new AlwaysOffSampler();
  return ratio >= 1 ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(ratio);
}

const randomHex = (bytes: number): string => crypto.getRandomValues(Buffer.alloc(bytes)).toString("hex");

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/;

/** Null for what is no traceparent of W3C's version 00. Whether its sender has recorded it is not passed on. */
function spanContextOf(traceparent: string): SpanContext | null {
  const [, traceId, spanId] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined) return null;
  return { traceId, spanId, traceFlags: TraceFlags.NONE, isRemote: true };
}

const traceparentOf = ({ traceId, spanId }: SpanContext): string => `00-${traceId}-${spanId}-01`;
