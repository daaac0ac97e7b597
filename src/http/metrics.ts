import { timingSafeEqual } from "node:crypto";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  countRequest(method: string, path: string, status: number, seconds: number): void;
  /** A figure that is read when somebody asks for it. */
  gauge(name: string, help: string, read: () => number): void;
  counter(name: string, help: string): { add(amount?: number): void };
  histogram(name: string, help: string, buckets: number[]): { observe(value: number): void };
  /** The text of the Prometheus exposition format. */
  text(): Promise<string>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "roost_" });
  const requests = new Histogram({
    name: "roost_http_request_seconds",
    help: "Time to answer, by route and status",
    labelNames: ["method", "path", "status"] as const,
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
    registers: [registry],
  });
  return {
    countRequest: (method, path, status, seconds) => requests.observe({ method, path, status }, seconds),
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers: [registry],
        collect() {
          this.set(read());
        },
      });
    },
    counter(name, help) {
      const counter = new Counter({ name, help, registers: [registry] });
      return { add: (amount = 1) => counter.inc(amount) };
    },
    histogram(name, help, buckets) {
      const histogram = new Histogram({ name, help, buckets, registers: [registry] });
      return { observe: (value) => histogram.observe(value) };
    },
    text: () => registry.metrics(),
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
