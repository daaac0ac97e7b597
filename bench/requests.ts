import { percentile, type Row } from "./figure.ts";
import { startHost } from "./host.ts";
import { type Load, runLoad } from "./load.ts";

/** An authenticated GET of an instance, against a server that answers a constant. */
export async function benchRequests(seconds = 4): Promise<Row[]> {
  await using host = await startHost();
  const { instanceId } = await host.ask("POST", "/v1/instances", { name: "bench" });
  const load: Load = {
    url: host.server.url,
    method: "GET",
    path: `/v1/instances/${instanceId}`,
    headers: { "X-API-Key": host.key },
    connections: 64,
    requests: Number.MAX_SAFE_INTEGER,
    seconds,
  };
  await runLoad({ ...load, seconds: 1 });
  const measured = await runLoad(load);
  if (measured.failures > 0) throw new Error(`${measured.failures} requests failed`);
  const constant = Bun.spawn([process.execPath, "-e", CONSTANT_SERVER], { stdio: ["ignore", "pipe", "inherit"] });
  const { value } = await constant.stdout.getReader().read();
  const baseline = await runLoad({ ...load, url: new TextDecoder().decode(value).trim() });
  constant.kill();
  const p99 = percentile(measured.latenciesMs, 0.99);
  return [
    {
      figure: "authenticated GET of an instance, 64 connections",
      value: measured.perSecond,
      unit: "requests/s",
      baseline: { what: "a constant by Bun.serve", value: baseline.perSecond },
      goal: "≥ 20,000 requests/s",
      met: measured.perSecond >= 20_000,
    },
    {
      figure: "the same, p99",
      value: p99,
      unit: "ms",
      baseline: { what: "a constant by Bun.serve", value: percentile(baseline.latenciesMs, 0.99) },
      goal: "≤ 20 ms",
      met: p99 <= 20,
    },
  ];
}

const CONSTANT_SERVER = `const s = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response('{"ok":true}') }); console.log("http://127.0.0.1:" + s.port)`;
