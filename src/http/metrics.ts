import { timingSafeEqual } from "node:crypto";
import type { Registry } from "prom-client";

export interface Metrics {
  countRequest(method: string, path: string, status: number, seconds: number): void;
  /** A figure that is read when somebody asks for it. */
  gauge(name: string, help: string, read: () => number): void;
  /** Loads the library, which costs a start 11 ms, once the server listens. */
  load(): Promise<void>;
  /** The text of the Prometheus exposition format. */
  text(): Promise<string>;
}

type Request = [method: string, path: string, status: number, seconds: number];

/** Seconds of the histogram's buckets: a read takes less than one millisecond, an answer of a model minutes. */
const BUCKETS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100];

export function createMetrics(): Metrics {
  const gauges: { name: string; help: string; read: () => number }[] = [];
  /** Requests that came while the library was loading. */
  const early: Request[] = [];
  let count = (...request: Request): void => void early.push(request);
  let loaded: Promise<Registry> | undefined;

  async function load(): Promise<Registry> {
    const { collectDefaultMetrics, Gauge, Histogram, Registry } = await import("prom-client");
    const registry = new Registry();
    collectDefaultMetrics({ register: registry, prefix: "roost_" });
    const seconds = new Histogram({
      name: "roost_http_request_seconds",
      help: "Time to answer, by route and status",
      labelNames: ["method", "path", "status"] as const,
      buckets: BUCKETS,
      registers: [registry],
    });
    count = (method, path, status, taken) => seconds.observe({ method, path, status }, taken);
    for (const request of early.splice(0)) count(...request);
    for (const { name, help, read } of gauges) {
      new Gauge({
        name,
        help,
        registers: [registry],
        collect() {
          this.set(read());
        },
      });
    }
    return registry;
  }

  return {
    countRequest: (...request) => count(...request),
    gauge: (name, help, read) => void gauges.push({ name, help, read }),
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

/** `/metrics` answers loopback, or anyone with the token (operations.md). */
export function mayReadMetrics(authorization: string | null, address: string, token: string | null): boolean {
  if (token !== null && authorization !== null) {
    const given = Buffer.from(authorization);
    const expected = Buffer.from(`Bearer ${token}`);
    if (given.length === expected.length && timingSafeEqual(given, expected)) return true;
  }
  return address === "::1" || address.replace(/^::ffff:/, "").startsWith("127.");
}
