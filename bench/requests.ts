import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { median, percentile, type Row } from "./figure.ts";
import { type BenchHost, startHost } from "./host.ts";
import { type Load, runLoad } from "./load.ts";

const PUTS = 200;
const FILE = "x".repeat(1024);

/** Authenticated GETs of an instance, against a server that answers a constant, and one client's PUTs of a file. */
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
    await benchPut(host, instanceId ?? ""),
  ];
}

/** One client replaces a file of a workspace. In turns with the bare write, since a disk's speed varies. */
async function benchPut(host: BenchHost, instanceId: string): Promise<Row> {
  const { agentId } = await host.ask("POST", `/v1/instances/${instanceId}/agents`, { name: "Ada" });
  const url = new URL(`/v1/instances/${instanceId}/agents/${agentId}/files/note.md`, host.server.url);
  const headers = { "X-API-Key": host.key, "Content-Type": "text/markdown" };
  const [put, bare]: [number[], number[]] = [[], []];
  for (let time = 0; time < PUTS; time++) {
    const begun = performance.now();
    const response = await fetch(url, { method: "PUT", headers, body: `${time} ${FILE}` });
    await response.text();
    put.push(performance.now() - begun);
    if (!response.ok) throw new Error(`PUT: ${response.status}`);
    bare.push(timeWrite(join(host.dataDir, `bare-${time}`)));
  }
  return {
    figure: "a PUT of a file of 1 KiB, 1 connection, p50",
    value: median(put),
    unit: "ms",
    baseline: { what: "a bare write and fsync", value: median(bare) },
  };
}

function timeWrite(path: string): number {
  const begun = performance.now();
  const file = openSync(path, "w");
  writeSync(file, FILE);
  fsyncSync(file);
  closeSync(file);
  return performance.now() - begun;
}

const CONSTANT_SERVER = `const s = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response('{"ok":true}') }); console.log("http://127.0.0.1:" + s.port)`;
