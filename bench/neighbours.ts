import { mkdirSync, writeFileSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { join, resolve } from "node:path";
import { AGENT_ATTACKS, ONE_AGENT_ATTACKS } from "./agent-attacks.ts";
import type { Target } from "./attacker.ts";
import { ATTACKS } from "./attacks.ts";
import { formatRows, median, percentile, type Row, residentMiB } from "./figure.ts";
import { type BenchHost, startHost, startMock } from "./host.ts";

/** A figure is the median of this many rounds, so that one hiccup of the machine's disk does not decide it. */
const ROUNDS = 3;
const ROUND_SECONDS = 4;
const WARM_UP_SECONDS = 1;
const AGENTS = 20;
const FILES = 2_000;
const PAUSE_MS = 4;
/** How much larger than undisturbed a figure may be, and its absolute maximum. */
const TIMES = 5;
/** The same for a message while an agent of another account is what disturbs, or all its agents, which take 80 runs. */
const TIMES_BY_AGENT = 1.2;
const TIMES_BY_AGENTS = 2;
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
    await using model = await startMock("calling-model.ts");
    await using own = await startMock("calling-model.ts");
    asOnAnotherMachine(own.pid);
    const egress = ["public", ...model.hosts, ...own.hosts].join();
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
  const feel = async () => {
    await use(host, quiet, WARM_UP_SECONDS);
    const rounds: Felt[] = [];
    while (rounds.length < ROUNDS) rounds.push(await use(host, quiet, ROUND_SECONDS));
    return rounds;
  };
  const before = await feel();
  const mibBefore = residentMiB(pid);
  const attacker = Bun.spawn(
    [process.execPath, resolve(import.meta.dir, "attacks.ts"), attack, JSON.stringify(target)],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  asOnAnotherMachine(attacker.pid);
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, residentMiB(pid));
  }, 100);
  const during = await feel();
  clearInterval(watch);
  attacker.kill("SIGKILL");
  await attacker.exited;
  const code = await host.server.stop();
  const row = (what: string, of: (felt: Felt) => number, times = TIMES): Row => {
    const [quietMs, ms] = [median(before.map(of)), median(during.map(of))];
    return {
      figure: `${what} while another ${attack}`,
      value: ms,
      unit: "ms",
      baseline: { what: "quiet", value: quietMs },
      goal: `≤ ${times} × and ≤ ${MAX_MS} ms`,
      met: ms <= times * quietMs && ms <= MAX_MS,
    };
  };
  const times = attack in ONE_AGENT_ATTACKS ? TIMES_BY_AGENT : attack in AGENT_ATTACKS ? TIMES_BY_AGENTS : TIMES;
  const broken = during.reduce((sum, felt) => sum + felt.broken, 0);
  const sound = broken === 0 && code === 0;
  return [
    row("GET p99", ({ getMs }) => percentile(getMs, 0.99)),
    row("message p50", ({ messageMs }) => median(messageMs), times),
    row("message p99", ({ messageMs }) => percentile(messageMs, 0.99), times),
    {
      figure: `memory over before${sound ? "" : ` (${broken} answers of 5xx, exit ${code})`}`,
      value: Math.max(0, most - mibBefore),
      unit: "MiB",
      goal: `≤ ${MAX_MIB} MiB, no 5xx, exit 0`,
      met: most - mibBefore <= MAX_MIB && sound,
    },
  ];
}

/** The attacker, and its model, must not take a core from the host or from who measures. */
const asOnAnotherMachine = (pid: number) => setPriority(pid, constants.priority.PRIORITY_LOW);

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
