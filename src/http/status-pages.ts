import { AppError } from "../lib/app-error.ts";
import { lazily } from "../lib/lazily.ts";
import { errorAnswer } from "./answer.ts";
import { type Metrics, mayReadMetrics } from "./metrics.ts";
import { pathAndQueryOf, requestIdOf } from "./request.ts";
import type { WebPage } from "./server.ts";

export interface StatusParts {
  version: string;
  /** Why no change can be committed; null if changes can be. */
  refusal(): Promise<string | null>;
  /** What locks scripts in on this machine. */
  sandboxLevel(): Promise<string>;
  metrics: Metrics;
  metricsToken: string | null;
  /** The peer of the connection. */
  socketAddressOf(request: Request): string;
  openApi(): Promise<unknown>;
}

const alive = (version: string): Response => Response.json({ status: "ok", version });

/** Clients do not all come back at once. */
const stoppingFor = (): number => 1 + Math.floor(Math.random() * 5);

/** Answers everything while the host stops: it lives, and takes no more work. */
export function answerWhileStopping(version: string): (request: Request) => Response {
  function answerTo(request: Request, requestId: string): Response {
    switch (pathAndQueryOf(request).split("?")[0]) {
      case "/healthz":
        return alive(version);
      case "/readyz":
        return Response.json({ status: "stopping" }, { status: 503 });
    }
    const error = new AppError("internal_error", "this server is stopping; try again in a moment", {
      status: 503,
      retryAfterSeconds: stoppingFor(),
    });
    return errorAnswer(error, requestId, request.headers.get("accept"));
  }
  return (request) => {
    const requestId = requestIdOf(request);
    const answer = answerTo(request, requestId);
    answer.headers.set("Connection", "close");
    answer.headers.set("X-Request-Id", requestId);
    return answer;
  };
}

/** Pages for machines: liveness, readiness, metrics, capabilities. */
export function statusPages(parts: StatusParts): WebPage[] {
  const { version, refusal, sandboxLevel, metrics, metricsToken, socketAddressOf, openApi } = parts;
  const document = lazily(async () => Buffer.from(JSON.stringify(await openApi())));
  return [
    { path: "/healthz", unlimited: true, answer: () => alive(version) },
    {
      path: "/readyz",
      unlimited: true,
      async answer() {
        const sandbox = await sandboxLevel();
        const answer = (code: number, status: string, reason?: string) =>
          Response.json({ status, ...(reason === undefined ? {} : { reason }), sandbox }, { status: code });
        const reason = await refusal();
        return reason === null ? answer(200, "ready") : answer(503, "read_only", reason);
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
      async answer() {
        const text = await document();
        const headers = { "Content-Type": "application/json", "Content-Length": `${text.byteLength}` };
        return new Response(text, { headers });
      },
    },
  ];
}
