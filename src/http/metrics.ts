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

/** A metric whose values are counted in buckets. */
export interface Distribution {
  name: string;
  help: string;
  labels: readonly string[];
  /** Their upper bounds. */
  buckets: readonly number[];
}

export type Observe = (labels: Record<string, string>, value: number) => void;

export interface Metrics {
  countRequest(method: string, path: string, status: number, seconds: number): void;
  add(figure: Figure): void;
  /** Returns what counts a value. */
  measure(distribution: Distribution): Observe;
  /** The metrics in the Prometheus text format. */
  text(): Promise<string>;
}

/** After the first request, so that the library, which takes 11 ms, delays neither the start nor that request. */
const LOAD_AFTER_MS = 1_000;

/** The histogram's buckets in seconds: a read takes less than a millisecond, a model's answer minutes. */
const BUCKETS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];

/**
 * Of the library's own: gauges that are named like counters and always 0 here, and figures of the event loop that are not
 * numbers, or the largest one, until something was measured.
 */
const UNFIT = [
  ...["active_handles", "active_requests", "active_resources"].flatMap((name) => [name, `${name}_total`]),
  ...["eventloop_lag_min_seconds", "eventloop_lag_mean_seconds", "eventloop_lag_stddev_seconds"],
].map((name) => `roost_nodejs_${name}`);

export function createMetrics(): Metrics {
  const figures: Figure[] = [];
  const distributions: { distribution: Distribution; bind(observe: Observe): void }[] = [];
  let loaded: Promise<Registry> | undefined;
  const load = (): Promise<Registry> => {
    loaded ??= loadLibrary();
    return loaded;
  };

  async function loadLibrary(): Promise<Registry> {
    const { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } = await import("prom-client");
    const registry = new Registry();
    // Monitoring the event loop wakes the process: at the library's default of 10 ms an idle server uses 1 % of a core.
    collectDefaultMetrics({ register: registry, prefix: "roost_", eventLoopMonitoringPrecision: 500 });
    for (const name of UNFIT) registry.removeSingleMetric(name);
    for (const { distribution, bind } of distributions) {
      const { name, help, labels, buckets } = distribution;
      const shown = { name, help, labelNames: [...labels], buckets: [...buckets], registers: [registry] };
      const histogram = new Histogram(shown);
      bind((values, value) => histogram.observe(values, value));
    }
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
            // The library's reset sets one without labels to 0, which is a value too.
            this.remove({});
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

  function measure(distribution: Distribution): Observe {
    /** Values from before the library was loaded. */
    const early: Parameters<Observe>[] = [];
    let observe: Observe = (...value) => {
      if (early.length === 0) setTimeout(() => void load(), LOAD_AFTER_MS).unref();
      early.push(value);
    };
    distributions.push({
      distribution,
      bind(loadedObserve) {
        observe = loadedObserve;
        for (const value of early.splice(0)) observe(...value);
      },
    });
    return (labels, value) => observe(labels, value);
  }

  const request = measure({
    name: "roost_http_request_seconds",
    help: "Time to answer, by route and status",
    labels: ["method", "path", "status"],
    buckets: BUCKETS,
  });
  return {
    countRequest: (method, path, status, seconds) => request({ method, path, status: String(status) }, seconds),
    add: (figure) => void figures.push(figure),
    measure,
    text: async () => (await load()).metrics(),
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
