import { AppError } from "../lib/app-error.ts";
import { lazily } from "../lib/lazily.ts";
import { type Metrics, mayReadMetrics } from "./metrics.ts";
import type { WebPage } from "./server.ts";

export interface StatusParts {
  version: string;
  isReady(): boolean;
  /** What locks scripts in on this machine. */
  sandboxLevel(): Promise<string>;
  metrics: Metrics;
  metricsToken: string | null;
  /** The peer of the connection. */
  socketAddressOf(request: Request): string;
  openApi(): Promise<unknown>;
}

/** Pages for machines: liveness, readiness, metrics, capabilities. */
export function statusPages(parts: StatusParts): WebPage[] {
  const { version, isReady, sandboxLevel, metrics, metricsToken, socketAddressOf, openApi } = parts;
  const document = lazily(async () => JSON.stringify(await openApi()));
  return [
    { path: "/healthz", unlimited: true, answer: () => Response.json({ status: "ok", version }) },
    {
      path: "/readyz",
      unlimited: true,
      async answer() {
        const sandbox = await sandboxLevel();
        const ready = isReady();
        return Response.json({ status: ready ? "ready" : "stopping", sandbox }, { status: ready ? 200 : 503 });
      },
    },
    {
      path: "/metrics",
      async answer(request) {
        if (!mayReadMetrics(request, socketAddressOf(request), metricsToken)) {
          throw new AppError(
            "unauthorized",
            "metrics are available on this machine only, or with the token of ROOST_METRICS_TOKEN",
            {
              headers: { "WWW-Authenticate": 'Bearer realm="roost"' },
            },
          );
        }
        return new Response(await metrics.text(), { headers: { "Content-Type": "text/plain; version=0.0.4" } });
      },
    },
    {
      path: "/openapi.json",
      answer: async () =>
        new Response(await document(), { headers: { "Content-Type": "application/json; charset=utf-8" } }),
    },
  ];
}
