import { timingSafeEqual } from "node:crypto";
import type { Registry } from "prom-client";
import { isFromThisMachine } from "./request.ts";

/** One value of a metric, with these labels. */
export interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** A metric whose value is read at each scrape. */
export interface Figure {
  /** A counter never decreases while the process lives. */
  kind: "gauge" | "counter";
  name: string;
  help: string;
  /** The names of its labels; none for a single value. */
  labels?: readonly string[];
  read(): number | readonly Sample[];
}

export interface Metrics {
  countRequest(method: string, path: string, status: number, seconds: number): void;
  add(figure: Figure): void;
  /** Loads the library once the server listens: it takes 11 ms, which would delay the start. */
  load(): Promise<void>;
  /** The metrics in the Prometheus text format. */
  text(): Promise<string>;
}

type Counted = [method: string, path: string, status: number, seconds: number];

/** The histogram's buckets in seconds: a read takes less than a millisecond, a model's answer minutes. */
const BUCKETS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];

export function createMetrics(): Metrics {
  const figures: Figure[] = [];
  /** Requests before the library was loaded. */
  const early: Counted[] = [];
  let count = (...request: Counted): void => void early.push(request);
  let loaded: Promise<Registry> | undefined;

  async function load(): Promise<Registry> {
    const { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } = await import("prom-client");
    const registry = new Registry();
    // Monitoring the event loop wakes the process: at the library's default of 10 ms an idle server uses 1 % of a core.
    collectDefaultMetrics({ register: registry, prefix: "roost_", eventLoopMonitoringPrecision: 500 });
    const seconds = new Histogram({
      name: "roost_http_request_seconds",
      help: "Time to answer, by route and status",
      labelNames: ["method", "path", "status"] as const,
      buckets: BUCKETS,
      registers: [registry],
    });
    count = (method, path, status, taken) => seconds.observe({ method, path, status }, taken);
    for (const request of early.splice(0)) count(...request);
    for (const { kind, name, help, labels = [], read } of figures) {
      const samples = (): readonly Sample[] => {
        const value = read();
        return typeof value === "number" ? [{ labels: {}, value }] : value;
      };
      const shared = { name, help, labelNames: [...labels], registers: [registry] };
      if (kind === "gauge") {
        new Gauge({
          ...shared,
          collect() {
            this.reset();
            for (const { labels, value } of samples()) this.set(labels, value);
          },
        });
      } else {
        new Counter({
          ...shared,
          collect() {
            this.reset();
            for (const { labels, value } of samples()) this.inc(labels, value);
          },
        });
      }
    }
    return registry;
  }

  return {
    countRequest: (...request) => count(...request),
    add: (figure) => void figures.push(figure),
    async load() {
      loaded ??= load();
      await loaded;
    },
    async text() {
      loaded ??= load();
      return (await loaded).metrics();
    },
  };
}

/** `/metrics` requires the token; without one it answers this machine only (docs/contract/operations.md, Metrics). */
export function mayReadMetrics(request: Request, socketAddress: string, token: string | null): boolean {
  if (token !== null) {
    const given = Buffer.from(request.headers.get("authorization") ?? "");
    const expected = Buffer.from(`Bearer ${token}`);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
  return isFromThisMachine(request, socketAddress);
}
