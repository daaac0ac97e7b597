import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../src/lib/log.ts";
import { AFTERMATH_SLICE, type Aftermath, createAftermath } from "../../src/messages/aftermath.ts";
import { openStore, type Store } from "../../src/storage/store.ts";

const log = await createLog("silent", "json");
let dataDir: string;
let store: Store;
/** The events reported, by commit. */
let reported: { agentId: string; kind: string; status: string; commit: number }[];
let commits: number;
let runsLeft: Map<string, number>;

const idOf = (instanceId: string, number: number) => `${instanceId}_agt_${String(number).padStart(4, "0")}`;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-aftermath-"));
  store = openStore(dataDir);
  [reported, commits, runsLeft] = [[], 0, new Map()];
});
afterEach(() => {
  store.close();
  rmSync(dataDir, { recursive: true });
});

function instanceWith(instanceId: string, agents: number): string {
  store.transaction(() => {
    store.sqlite.run(
      "INSERT OR IGNORE INTO accounts (account_id, email, name, created_at) VALUES ('a', 'a@b.c', 'A', 0)",
    );
    store.sqlite.run(
      "INSERT INTO instances (instance_id, account_id, name, status, created_at) VALUES (?, 'a', 'x', 'running', 0)",
      [instanceId],
    );
    for (let number = 0; number < agents; number++) {
      const id = idOf(instanceId, number);
      store.sqlite.run(
        `INSERT INTO agents (agent_id, instance_id, name, slug, display_name, created_at, updated_at)
         VALUES (?, ?, 'x', ?, 'x', 0, 0)`,
        [id, instanceId, String(number)],
      );
    }
  });
  return instanceId;
}

/** A new process with what the earlier one left in the database. */
const begin = (): Aftermath =>
  createAftermath({
    store,
    log,
    cancelStopped(instanceId, most) {
      noteCommit();
      const count = Math.min(most, runsLeft.get(instanceId) ?? 0);
      runsLeft.set(instanceId, (runsLeft.get(instanceId) ?? 0) - count);
      reported.push(...Array(count).fill({ agentId: "", kind: "cancel", status: "", commit: commits }));
      return count;
    },
    tell(agentId, kind, data) {
      noteCommit();
      reported.push({ agentId, kind, status: (data as { status?: string }).status ?? "", commit: commits });
      return 1;
    },
  });
let noted = false;
function noteCommit(): void {
  if (noted) return;
  noted = true;
  const end = () => {
    noted = false;
    commits++;
  };
  store.afterCommit(end, end);
}
const mostInACommit = (): number =>
  Math.max(
    0,
    ...Map.groupBy(reported, ({ commit }) => commit)
      .values()
      .map((some) => some.length),
  );
const pending = () => store.sqlite.query("SELECT 1 FROM instance_aftermath").all().length;

describe("the aftermath of a change to an instance", () => {
  test("happens in its transaction if it is small", () => {
    const instanceId = instanceWith("i", 20);
    runsLeft.set(instanceId, 30);
    const aftermath = begin();
    store.transaction(() => {
      aftermath.add(instanceId, "cancel");
      aftermath.add(instanceId, "instance.status", { status: "stopped" });
    });
    expect(reported.map(({ kind }) => kind)).toEqual([
      ...Array(30).fill("cancel"),
      ...Array(20).fill("instance.status"),
    ]);
    expect(pending()).toBe(0);
  });

  test("is limited to one slice per commit; the rest happens in the background, however many agents and runs there are", async () => {
    const instanceId = instanceWith("i", 250);
    runsLeft.set(instanceId, 1_000);
    const aftermath = begin();
    store.transaction(() => {
      aftermath.add(instanceId, "cancel");
      aftermath.add(instanceId, "instance.status", { status: "stopped" });
    });
    expect(reported).toHaveLength(AFTERMATH_SLICE);
    aftermath.run();
    await aftermath.settled();
    expect(mostInACommit()).toBe(AFTERMATH_SLICE);
    expect(runsLeft.get(instanceId)).toBe(0);
    const agents = reported.filter(({ kind }) => kind === "instance.status").map(({ agentId }) => agentId);
    expect(agents).toEqual(Array.from({ length: 250 }, (_, number) => idOf(instanceId, number)));
    expect(pending()).toBe(0);
  });

  test("is limited to one slice even if all instances of an account stop in one commit", () => {
    const all = Array.from({ length: 50 }, (_, number) => instanceWith(`i${number}`, 5));
    const aftermath = begin();
    store.transaction(() => {
      for (const instanceId of all) aftermath.add(instanceId, "instance.status", { status: "stopped" });
    });
    expect(reported.length).toBeLessThanOrEqual(AFTERMATH_SLICE);
    expect(pending()).toBeGreaterThan(20);
  });

  test("continues after a crash where it was interrupted, and notifies nobody twice", async () => {
    const instanceId = instanceWith("i", 250);
    store.transaction(() => begin().add(instanceId, "instance.status", { status: "stopped" }));
    expect(reported).toHaveLength(AFTERMATH_SLICE);
    const next = begin();
    next.run();
    await next.settled();
    expect(reported.map(({ agentId }) => agentId)).toEqual(
      Array.from({ length: 250 }, (_, at) => idOf(instanceId, at)),
    );
  });

  test("ends with every agent notified of the latest change, however many there were meanwhile", async () => {
    const instanceId = instanceWith("i", 250);
    const aftermath = begin();
    const change = (status: string) =>
      store.transaction(() => aftermath.add(instanceId, "instance.status", { status }));
    for (let times = 0; times < 7; times++) {
      change("stopped");
      change("running");
    }
    change("stopped");
    aftermath.run();
    await aftermath.settled();
    const last = new Map(reported.map(({ agentId, status }) => [agentId, status]));
    expect(last.size).toBe(250);
    expect(new Set(last.values())).toEqual(new Set(["stopped"]));
    // No agent waits forever for earlier ones: the round continues where it was.
    expect(reported.slice(0, 250).map(({ agentId }) => agentId)).toEqual([...last.keys()]);
    expect(pending()).toBe(0);
  });

  test("does not delay that of other instances: they take turns", async () => {
    const [large, small] = [instanceWith("a", 500), instanceWith("b", 120)];
    const aftermath = begin();
    for (const instanceId of [large, small]) {
      store.transaction(() => aftermath.add(instanceId, "instance.status", { status: "stopped" }));
    }
    aftermath.run();
    await aftermath.settled();
    const lastOf = (instanceId: string) => reported.findLastIndex(({ agentId }) => agentId.startsWith(instanceId));
    expect(lastOf(small)).toBeLessThan(lastOf(large));
  });

  test("is rolled back with the change", () => {
    const instanceId = instanceWith("i", 250);
    const aftermath = begin();
    expect(() =>
      store.transaction(() => {
        aftermath.add(instanceId, "instance.status", { status: "stopped" });
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(pending()).toBe(0);
    reported.length = 0;
    store.transaction(() => aftermath.add(instanceId, "instance.status", { status: "stopped" }));
    expect(reported).toHaveLength(AFTERMATH_SLICE);
  });
});
