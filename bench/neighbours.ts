import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { AGENT_ATTACKS } from "./agent-attacks.ts";
import type { Target } from "./attacker.ts";
import { ATTACKS } from "./attacks.ts";
import { formatRows, median, percentile, type Row, residentMiB } from "./figure.ts";
import { type BenchHost, startHost, startMock } from "./host.ts";

const SECONDS = 6;
const AGENTS = 20;
const FILES = 2_000;
const PAUSE_MS = 4;
/** How much larger than undisturbed a figure may be, and its absolute maximum. */
const TIMES = 5;
/** The same for a message while agents of another account are what disturbs: they are what the host is for. */
const TIMES_BY_AGENTS = 1.2;
const MAX_MS = 100;
const MAX_MIB = 150;

interface Felt {
  getMs: number[];
  messageMs: number[];
  /** Answers of 500 and above. */
  broken: number;
}

/** A quiet account's p99 of a GET and of a message while another account, or a stranger, does its worst. */
export async function benchNeighbours(only = Object.keys(ATTACKS)): Promise<Row[]> {
  const rows: Row[] = [];
  for (const attack of only) {
    // The attacker's own model is another process: what that costs is not the host's.
    await using model = await startMock("calling-model.ts");
    await using own = await startMock("calling-model.ts");
    const egress = `public,${new URL(model.url).host},${new URL(own.url).host}`;
    await using host = await startHost(
      { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: model.url, ROOST_EGRESS: egress },
      "kept",
    );
    rows.push(...(await underAttack(attack, host, own.url)));
  }
  return rows;
}

async function underAttack(attack: string, host: BenchHost, model: string): Promise<Row[]> {
  const quiet = await makeAgent(host, host.key, "quiet");
  const target = await makeTarget(host, model);
  const pid = host.server.process.pid;
  const feel = (seconds: number) => use(host, quiet, seconds);
  await feel(1);
  const before = await feel(SECONDS);
  const mibBefore = residentMiB(pid);
  const attacker = Bun.spawn(
    [process.execPath, resolve(import.meta.dir, "attacks.ts"), attack, JSON.stringify(target)],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, residentMiB(pid));
  }, 100);
  const during = await feel(SECONDS);
  clearInterval(watch);
  attacker.kill("SIGKILL");
  await attacker.exited;
  const code = await host.server.stop();
  const p99 = (values: number[]) => percentile(values, 0.99);
  const row = (what: string, quietMs: number, ms: number, times = TIMES): Row => ({
    figure: `${what} while another ${attack}`,
    value: ms,
    unit: "ms",
    baseline: { what: "quiet", value: quietMs },
    goal: `≤ ${times} × and ≤ ${MAX_MS} ms`,
    met: ms <= times * quietMs && ms <= MAX_MS,
  });
  const times = attack in AGENT_ATTACKS ? TIMES_BY_AGENTS : TIMES;
  const sound = during.broken === 0 && code === 0;
  return [
    row("GET p99", p99(before.getMs), p99(during.getMs)),
    row("message p50", median(before.messageMs), median(during.messageMs), times),
    row("message p99", p99(before.messageMs), p99(during.messageMs), times),
    {
      figure: `memory over before${sound ? "" : ` (${during.broken} answers of 5xx, exit ${code})`}`,
      value: Math.max(0, most - mibBefore),
      unit: "MiB",
      goal: `≤ ${MAX_MIB} MiB, no 5xx, exit 0`,
      met: most - mibBefore <= MAX_MIB && sound,
    },
  ];
}

/** One request after the other, as a quiet account makes them. */
async function use(host: BenchHost, { instanceId, agentId }: Place, seconds: number): Promise<Felt> {
  const felt: Felt = { getMs: [], messageMs: [], broken: 0 };
  const headers = { "X-API-Key": host.key, "Content-Type": "application/json" };
  const time = async (into: number[], path: string, init: RequestInit) => {
    const began = performance.now();
    const response = await fetch(new URL(path, host.server.url), { ...init, headers });
    await response.text();
    into.push(performance.now() - began);
    if (response.status >= 500) felt.broken++;
  };
  const body = JSON.stringify({ message: "Hello" });
  for (const until = performance.now() + seconds * 1000; performance.now() < until; ) {
    for (let times = 0; times < 3; times++) await time(felt.getMs, `/v1/instances/${instanceId}`, {});
    await time(felt.messageMs, `/v1/instances/${instanceId}/agents/${agentId}/messages`, { method: "POST", body });
    await Bun.sleep(PAUSE_MS);
  }
  return felt;
}

interface Place {
  instanceId: string;
  agentId: string;
}

async function makeAgent(host: BenchHost, key: string, name: string): Promise<Place> {
  const instanceId = await make(host, key, "/v1/instances", { name }, "instanceId");
  return { instanceId, agentId: await make(host, key, `/v1/instances/${instanceId}/agents`, { name }, "agentId") };
}

/** Another account, with thousands of files that are on the disk already. */
async function makeTarget(host: BenchHost, model: string): Promise<Target> {
  const key = await host.signUp("attacker@example.com");
  const instanceId = await make(host, key, "/v1/instances", { name: "attacker" }, "instanceId");
  const agents: string[] = [];
  for (let number = 0; number < AGENTS; number++) {
    const slug = `agent-${number}`;
    agents.push(await make(host, key, `/v1/instances/${instanceId}/agents`, { name: slug, slug }, "agentId"));
    const folder = join(host.dataDir, "instances", instanceId, "agents", slug, "notes");
    mkdirSync(folder);
    for (let file = 0; file < FILES; file++) writeFileSync(join(folder, `${"long-name-".repeat(8)}${file}.md`), "x");
  }
  return { url: host.server.url, key, instanceId, agents, model };
}

async function make(host: BenchHost, key: string, path: string, body: unknown, id: string): Promise<string> {
  const response = await fetch(new URL(path, host.server.url), {
    method: "POST",
    headers: { "X-API-Key": key, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const made = (await response.json()) as Record<string, string>;
  const value = made[id];
  if (!response.ok || value === undefined) throw new Error(`${path}: ${response.status} ${JSON.stringify(made)}`);
  return value;
}

// `bun bench/neighbours.ts floods fills`: only the attacks with one of these words in their names.
if (import.meta.main) {
  const words = process.argv.slice(2);
  const names = Object.keys(ATTACKS).filter((name) => words.some((word) => name.includes(word)));
  for (const name of names) console.log(`${formatRows(await benchNeighbours([name]))}\n`);
  process.exit(0);
}
