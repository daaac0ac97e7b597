import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { showNames } from "../../src/agents/shown-files.ts";
import { createWorkspaceFiles, type WorkspaceFiles } from "../../src/agents/workspace-files.ts";
import { AppError } from "../../src/lib/app-error.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { refuseClash } from "../../src/workspace/file-name.ts";
import { plansOf } from "../support/query-plans.ts";
import { standing } from "../workspace/disk.ts";

let store: Store;
let files: WorkspaceFiles;
const dataDir = mkdtempSync(join(tmpdir(), "roost-files-"));

beforeAll(() => {
  store = openStore(dataDir);
  files = createWorkspaceFiles(store.db);
  store.sqlite.run("PRAGMA synchronous = OFF"); // hundreds of commits, and this test is not about the disk
  store.transaction(() => {
    store.sqlite.run("INSERT INTO accounts (account_id, email, name, created_at) VALUES ('acct', 'a@b.c', 'A', 0)");
  });
});
beforeEach(() =>
  store.transaction(() => {
    for (const table of ["workspace_files", "agents", "instances", "account_usage"])
      store.sqlite.run(`DELETE FROM ${table}`);
    addInstance("i");
    addAgent("a", "i");
  }),
);
afterAll(() => {
  store.close();
  rmSync(dataDir, { recursive: true });
});

const run = (sql: string, ...values: (string | number)[]) => store.sqlite.query(sql).run(...values);
const addInstance = (id: string) =>
  run(
    "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES (?, 'acct', 'x', 'running', 0)",
    id,
  );
const addAgent = (id: string, instanceId: string) =>
  run(
    "INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at) VALUES (?1, ?2, 'x', ?1, 'x', 0, 0)",
    id,
    instanceId,
  );
const put = (agentId: string, names: Iterable<string>, size = 1) =>
  store.transaction(() => {
    for (const name of names) files.put(agentId, { name, size, updatedAt: 0 });
  });

test("no query about a workspace reads all of it", () => {
  const plans = plansOf(store, () => {
    const asked = createWorkspaceFiles(store.db);
    asked.find("a", "n");
    asked.page("a", "n", 10);
    asked.totals("a");
    const names = asked.standing("a", new Set());
    names.has("n");
    names.at({ spelling: "n", isFolder: true });
    names.at({ spelling: "n", isFolder: false });
  });
  // Rows are found by an agent and a name, or a range of names, never by the agent alone.
  const narrow = /^SEARCH workspace_files .*\(agent_id=\? AND (name|<expr>)|^SEARCH agents .*\(agent_id=\?\)$/;
  expect(plans.filter((plan) => !narrow.test(plan))).toEqual([]);
  expect(plans).toHaveLength(6);
});

describe("the names of a workspace", () => {
  const name = fc
    .array(fc.constantFrom("a", "A", "b", "B", "a b", "a-"), { minLength: 1, maxLength: 3 })
    .map((parts) => parts.join("/"));
  const judge = (work: () => void) => {
    try {
      work();
      return "taken";
    } catch (error) {
      if (error instanceof AppError) return "refused";
      throw error;
    }
  };

  test("are checked for clashes as if a new one were compared with each of them", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(name, { maxLength: 8 }),
        fc.array(name, { maxLength: 3 }),
        fc.nat(3),
        (held, added, gone) => {
          run("DELETE FROM workspace_files");
          put("a", held);
          const without = new Set(held.slice(0, gone).filter((one) => !added.includes(one)));
          const slow = judge(() => refuseClash(standing(held, without), added));
          expect(judge(() => refuseClash(files.standing("a", without), added))).toBe(slow);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("do not matter to other workspaces", () => {
    addAgent("b", "i");
    put("b", ["README"]);
    refuseClash(files.standing("a", new Set()), ["readme"]);
  });
});

test("sums of files, workspaces, agents and instances equal those of the rows, whatever happens", () => {
  type Step = {
    kind: "put" | "drop" | "agent" | "instance" | "dead agent" | "dead instance";
    at: number;
    size: number;
  };
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom("put", "put", "put", "drop", "agent", "instance", "dead agent", "dead instance", "put"),
    at: fc.nat(5),
    size: fc.nat(1_000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      for (const table of ["workspace_files", "agents", "instances", "account_usage"]) run(`DELETE FROM ${table}`);
      addInstance("i0");
      steps.forEach(({ kind, at, size }, turn) => {
        const rows = (table: string) =>
          store.sqlite.query<{ id: string }, []>(`SELECT ${table}_id AS id FROM ${table}s ORDER BY 1`).all();
        const pick = (table: string) => rows(table)[at % Math.max(1, rows(table).length)]?.id;
        const agent = pick("agent");
        const instance = pick("instance") ?? "";
        if (kind === "instance") addInstance(`i${turn + 1}`);
        else if (kind === "agent") addAgent(`a${turn}`, instance);
        else if (kind === "dead instance") run("UPDATE instances SET removed_at = 1 WHERE instance_id = ?", instance);
        else if (agent === undefined) return;
        else if (kind === "put") files.put(agent, { name: `f${size % 3}`, size, updatedAt: 0 });
        else if (kind === "drop") files.drop(agent, `f${size % 3}`);
        else run("UPDATE agents SET removed_at = 1 WHERE agent_id = ?", agent);
      });
      const wrong = store.sqlite
        .query(
          `SELECT agent_id FROM agents WHERE (file_count, file_bytes, file_name_bytes) IS NOT
             (SELECT count(*), coalesce(sum(size), 0), coalesce(sum(length(name)), 0) FROM workspace_files AS f
              WHERE f.agent_id = agents.agent_id)
           UNION ALL SELECT instance_id FROM instances WHERE removed_at IS NULL AND (agent_count, workspace_bytes) IS NOT
             (SELECT count(*), coalesce(sum(file_bytes), 0) FROM agents AS a
              WHERE a.instance_id = instances.instance_id AND a.removed_at IS NULL)`,
        )
        .all();
      expect(wrong).toEqual([]);
      expect(store.sqlite.query("SELECT instances, agents, workspace_bytes FROM account_usage").get()).toEqual(
        store.sqlite
          .query(
            `SELECT count(*) AS instances, coalesce(sum(agent_count), 0) AS agents,
               coalesce(sum(workspace_bytes), 0) AS workspace_bytes FROM instances WHERE removed_at IS NULL`,
          )
          .get(),
      );
    }),
    { numRuns: 200 },
  );
});

describe("the file names in a list", () => {
  const KIB = 1024;
  const sumsOf = (ids: string[]) =>
    ids.map((agentId) => ({
      agentId,
      fileCount: files.totals(agentId).files,
      fileNameBytes:
        store.sqlite
          .query<{ n: number }, [string]>("SELECT file_name_bytes AS n FROM agents WHERE agent_id = ?")
          .get(agentId)?.n ?? 0,
    }));
  const many = (count: number, length: number) =>
    Array.from({ length: count }, (_, at) => String(at).padStart(6, "0").padEnd(length, "x"));

  test("are complete up to 64 KiB, also ten thousand short ones", () => {
    const names = many(10_000, 6);
    put("a", names);
    expect(showNames(files, sumsOf(["a"])).get("a")).toEqual({ names, isCut: false });
  });

  test("are cut beyond 64 KiB, and the first by name are shown", () => {
    put("a", many(1_000, 100));
    const shown = showNames(files, sumsOf(["a"])).get("a");
    expect(shown?.isCut).toBe(true);
    expect(shown?.names).toEqual(many(1_000, 100).slice(0, Math.floor((64 * KIB) / 100)));
  });

  test("fill at most 512 KiB on a page of a hundred agents, and agents with few names show them all", () => {
    const ids = Array.from({ length: 20 }, (_, at) => `long${at}`);
    for (const id of ids) addAgent(id, "i");
    for (const id of ids) put(id, many(1_000, 100));
    put("a", ["SOUL.md", "AGENTS.md"]);
    const shown = showNames(files, sumsOf([...ids, "a"]));
    const bytes = [...shown.values()].flatMap(({ names }) => names).reduce((sum, name) => sum + name.length, 0);
    expect(bytes).toBeLessThanOrEqual(512 * KIB);
    expect(bytes).toBeGreaterThan(256 * KIB);
    expect(shown.get("a")).toEqual({ names: ["AGENTS.md", "SOUL.md"], isCut: false });
    expect(ids.every((id) => shown.get(id)?.isCut)).toBe(true);
  });
});
