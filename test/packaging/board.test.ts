import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { parser } from "@prometheus-io/lezer-promql";
import { codeIn, readContract, sectionOf } from "../contract/pages.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string; legendFormat: string }[];
}

const board = await Bun.file(join(import.meta.dir, "../../packaging/grafana/roost.json")).json();
const panels: Panel[] = board.panels;
const queries = panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));

/** As Grafana sends it. */
const filled = (expr: string): string =>
  expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$(job|instance)\b/g, "roost");

interface Named {
  metric: string;
  /** In its matchers, and in groupings around it. */
  labels: string[];
}

/** The metrics of a query, with the labels that it expects of them. Throws if it is not PromQL. */
function namedIn(expr: string): Named[] {
  const text = filled(expr);
  const found: Named[] = [];
  const groupings: { labels: string[]; to: number }[] = [];
  parser.parse(text).iterate({
    enter({ type, from, to, node }) {
      if (type.isError) throw new Error(`${expr}: not PromQL at ${text.slice(from)}`);
      if (type.name === "AggregateExpr") {
        const inner = node.getChild("AggregateModifier")?.getChild("GroupingLabels")?.getChildren("LabelName") ?? [];
        groupings.push({ labels: inner.map((label) => text.slice(label.from, label.to)), to });
      }
      if (type.name !== "VectorSelector") return;
      const name = node.getChild("Identifier");
      const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
      const own = matchers.map((one) => one.getChild("LabelName")).map((one) => text.slice(one?.from, one?.to));
      const around = groupings.filter((group) => group.to >= to).flatMap(({ labels }) => labels);
      found.push({ metric: text.slice(name?.from, name?.to), labels: [...own, ...around] });
    },
  });
  return found;
}

/** What Prometheus itself adds. */
const OF_SCRAPE = ["job", "instance"];

const mock = startMockModelServer();
const server = await startTestServer({
  ROOST_MODEL: "openai:mock",
  ROOST_OPENAI_BASE_URL: mock.url,
  ROOST_NETWORKS: "base",
  ROOST_BASE_RPC_URL: "http://127.0.0.1:9",
  ROOST_BACKUP_EVERY: "1d",
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
});

/** The labels that each metric of a server has had, which has done a bit of everything. */
const exposed = await (async () => {
  const person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  const agents = `/v1/instances/${instanceId}/agents`;
  const { agentId } = (await person.ask("POST", agents, { name: "Ada" })).body;
  const at = `${agents}/${agentId}`;
  const calls = [
    { name: "web_fetch", arguments: { url: "http://127.0.0.1:9/" } },
    { name: "run_javascript", arguments: { code: "return 1;" } },
    { name: "http_request", arguments: { url: "https://nobody.example/", method: "GET" } },
  ];
  mock.script(...calls.map((call) => ({ kind: "tools" as const, calls: [call] })));
  await person.ask("POST", `${at}/messages`, { message: "hi" });
  mock.script({ kind: "status", status: 400 });
  await person.ask("POST", `${at}/messages`, { message: "hi" });
  const txHash = `0x${"ab".repeat(32)}`;
  const headers = { "X-PAYMENT": JSON.stringify({ txHash, network: "base" }) };
  await person.ask("POST", "/v1/billing/top-up", {}, headers);
  const { body } = await server.ask("GET", "/metrics");
  const labels = new Map<string, Set<string>>();
  for (const [, name = ""] of (body as string).matchAll(/^# TYPE (\w+) /gm)) labels.set(name, new Set());
  for (const [, name = "", pairs = ""] of (body as string).matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = labels.get(name) ?? new Set();
    for (const [, label = ""] of pairs.matchAll(/(\w+)="/g)) known.add(label);
    labels.set(name, known);
  }
  return labels;
})();

const { operations } = await readContract();
/** By metric, everything that its row in the operator's manual names. */
const told = new Map(
  sectionOf(operations, "Metrics")
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .flatMap((line) => codeIn(line.split(" | ")[0] ?? "").map((name) => [name, codeIn(line)] as const)),
);
/** Metrics that have values only where there is a collector, or once a backup was made. */
const LATER = new Set(["roost_spans_total", "roost_backups_total"]);

test.each(queries)("$title: $expr is PromQL about metrics and labels that a host has", ({ expr, legendFormat }) => {
  const named = namedIn(expr);
  expect(named).not.toBeEmpty();
  for (const { metric, labels } of named) {
    const has = exposed.get(metric);
    expect([metric, has !== undefined]).toEqual([metric, true]);
    const known = [...(has ?? []), ...(LATER.has(metric) ? (told.get(metric) ?? []) : []), ...OF_SCRAPE];
    expect(labels.filter((label) => !known.includes(label))).toEqual([]);
    expect(labels).toContain("job");
  }
  const shown = Array.from(legendFormat.matchAll(/\{\{(\w+)\}\}/g), ([, label = ""]) => label);
  const all = named.flatMap(({ metric }) => [
    ...(exposed.get(metric) ?? []),
    ...(told.get(metric) ?? []),
    ...OF_SCRAPE,
  ]);
  expect(shown.filter((label) => !all.includes(label))).toEqual([]);
});

test("the check finds a metric that is none, a label that is none, and what is not PromQL", () => {
  expect(namedIn('sum by (nobody) (rate(roost_runs_total{job="$job"}[$__rate_interval]))')).toEqual([
    { metric: "roost_runs_total", labels: ["job", "nobody"] },
  ]);
  expect(exposed.has("roost_nothing")).toBe(false);
  expect(() => namedIn("sum by (rate(")).toThrow("not PromQL");
});

test("the board has every section, panels that do not overlap, and only variables that it defines", () => {
  const rows = panels.filter(({ type }) => type === "row").map(({ title }) => title);
  expect(rows).toEqual([
    ...["Overview", "Runs", "Model calls and tokens", "Tools", "Approvals", "Workers and memory", "Event streams"],
    ...["Ledger and payments", "Backups and disk"],
  ]);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  const variables = board.templating.list.map(({ name }: { name: string }) => name);
  const used = JSON.stringify(board).matchAll(/\$\{?(?!__)(\w+)/g);
  expect([...new Set(Array.from(used, ([, name]) => name))].toSorted()).toEqual(variables.toSorted());
});

test("every metric of a host is on the board, but those of the process that say little alone", () => {
  const shown = new Set(queries.flatMap(({ expr }) => namedIn(expr).map(({ metric }) => metric)));
  const families = [...exposed.keys()].filter((name) => !/^roost_(process|nodejs)_/.test(name));
  const isShown = (name: string) => ["", "_count", "_sum", "_bucket"].some((end) => shown.has(`${name}${end}`));
  expect(families.filter((name) => !/_(count|sum|bucket)$/.test(name) && !isShown(name))).toEqual([]);
});
