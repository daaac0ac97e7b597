import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from "@opentelemetry/sdk-trace";

import { OUTGOING } from "../limits/outgoing.ts";

export interface SendingOptions {
  /** The collector's, with its path. */
  url: string;
  headers: Record<string, string>;
  timeoutMs: number;
  /** Spans could not be sent. Called at most once a minute. */
  onFailure(reason: string): void;
}

export interface Sending {
  processor: SpanProcessor;
  figures(): { sent: number; dropped: number };
  /** Sends what is left, within a deadline. Never rejects. */
  close(): Promise<void>;
}

type ExportResult = Parameters<Parameters<SpanExporter["export"]>[1]>[0];
const SUCCESS = 0;

const { connections } = OUTGOING.traces;

/** Spans that wait or are being sent: about a kilobyte each. Further ones are dropped. */
const MAX_WAITING = 2_048;
const BATCH = 512;
const EVERY_MS = 2_000;
const CLOSE_MS = 2_000;
const TOLD_EVERY_MS = 60_000;

/** Sends spans in batches. A collector that is slow, or gone, costs the spans and nothing else; all of them are counted. */
export function createSending({ url, headers, timeoutMs, onFailure }: SendingOptions): Sending {
  let [waiting, sent, dropped] = [0, 0, 0];
  let toldMs = Number.NEGATIVE_INFINITY;
  const exporter = new OTLPTraceExporter({ url, headers, timeoutMillis: timeoutMs, concurrencyLimit: connections });

  function settle(count: number, { code, error }: ExportResult): void {
    waiting -= count;
    if (code === SUCCESS) {
      sent += count;
      return;
    }
    dropped += count;
    const nowMs = performance.now();
    if (nowMs - toldMs < TOLD_EVERY_MS) return;
    toldMs = nowMs;
    onFailure(reasonOf(error));
  }

  const counting: SpanExporter = {
    export(spans, done) {
      let isSettled = false;
      exporter.export(spans, (result) => {
        if (!isSettled) settle(spans.length, result);
        isSettled = true;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter: counting,
    maxQueueSize: MAX_WAITING,
    maxExportBatchSize: BATCH,
    scheduledDelayMillis: EVERY_MS,
    exportTimeoutMillis: 2 * timeoutMs,
  });
  return {
    processor: {
      onStart: () => {},
      onEnd(span: ReadableSpan) {
        if (waiting >= MAX_WAITING) {
          dropped++;
          return;
        }
        waiting++;
        batches.onEnd(span);
      },
      forceFlush: () => batches.forceFlush(),
      shutdown: () => batches.shutdown(),
    },
    figures: () => ({ sent, dropped }),
    async close() {
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, CLOSE_MS);
      await Promise.race([batches.shutdown().catch(() => undefined), late.promise]);
      clearTimeout(timer);
    },
  };
}

/** Without what the collector says, which may repeat what it was sent. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "number") return `it answered ${code}`;
  return typeof code === "string" ? code : "it did not answer";
}
