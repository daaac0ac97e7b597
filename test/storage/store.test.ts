import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, mock, spyOn, test } from "bun:test";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Durability, openStore, type Store } from "../../src/storage/store.ts";
import { createWalSync } from "../../src/storage/wal-sync.ts";

let dataDir: string;
let store: Store;
/** What hooks have thrown; a test takes what it expects. */
const reported: string[] = [];

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "roost-store-"));
  store = openStore(dataDir, createWalSync, (error) => reported.push((error as Error).message));
  store.sqlite.run("CREATE TABLE notes (note TEXT UNIQUE NOT NULL) STRICT");
});
afterEach(() => {
  expect(reported).toEqual([]);
  store.close();
  rmSync(dataDir, { recursive: true, force: true });
  mock.restore();
});

const write = (note: string) => void store.sqlite.run("INSERT INTO notes VALUES (?)", [note]);
const notes = () => store.sqlite.query<{ note: string }, []>("SELECT note FROM notes ORDER BY rowid").all();
const written = () => notes().map(({ note }) => note);
const refuse = (): never => {
  throw new Error("refused");
};

/** For the store, until the end of the test: all that waits then shares one commit, however busy this machine is. */
function stopTime(): void {
  nowMs = 0;
  spyOn(performance, "now").mockImplementation(() => nowMs);
}
let nowMs = 0;

/** Opens the store again on a disk that takes its time: what it was asked to keep it keeps, or loses, when told. */
function openOnSlowDisk() {
  store.close();
  const asked = Promise.withResolvers<void>();
  const kept = Promise.withResolvers<void>();
  let syncs = 0;
  store = openStore(dataDir, (path) => ({
    ...createWalSync(path),
    sync() {
      syncs++;
      asked.resolve();
      return kept.promise;
    },
  }));
  return { asked: () => asked.promise, syncs: () => syncs, finish: kept.resolve, fail: kept.reject };
}

describe("a transaction", () => {
  test("commits all of its work or nothing", () => {
    store.transaction(() => write("kept"));
    expect(() =>
      store.transaction(() => {
        write("lost");
        refuse();
      }),
    ).toThrow("refused");
    expect(written()).toEqual(["kept"]);
  });

  test("inside another is a savepoint: it rolls back alone, or with the one around it", () => {
    store.transaction(() => {
      write("outer");
      expect(() =>
        store.transaction(() => {
          write("inner");
          refuse();
        }),
      ).toThrow("refused");
    });
    expect(() =>
      store.transaction(() => {
        store.transaction(() => write("inner, kept until the outer falls"));
        refuse();
      }),
    ).toThrow("refused");
    expect(written()).toEqual(["outer"]);
  });

  test("returns the work's result, once it is on disk", () => {
    expect(store.transaction(() => 42)).toBe(42);
    expect(store.sqlite.query("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
    expect(store.sqlite.query("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    expect(store.sqlite.query("PRAGMA foreign_keys").get()).toEqual({ foreign_keys: 1 });
  });
});

describe("a commit hook", () => {
  test("runs after the commit, in order, and sees what was committed", () => {
    const told: string[] = [];
    store.transaction(() => {
      store.afterCommit(() => told.push(`first of ${written().join()}`));
      store.transaction(() => store.afterCommit(() => told.push("second")));
      write("note");
      expect(told).toEqual([]);
    });
    expect(told).toEqual(["first of note", "second"]);
  });

  test("runs at once if no transaction is open", () => {
    const told: string[] = [];
    store.afterCommit(() => told.push("now"));
    expect(told).toEqual(["now"]);
  });

  test("is undone with its transaction, or with its savepoint alone", () => {
    const told: string[] = [];
    const follow = (name: string) =>
      store.afterCommit(
        () => told.push(`${name} then`),
        () => told.push(`${name} otherwise`),
      );
    store.transaction(() => {
      follow("outer");
      expect(() =>
        store.transaction(() => {
          follow("inner");
          refuse();
        }),
      ).toThrow("refused");
    });
    expect(told).toEqual(["inner otherwise", "outer then"]);
    expect(() =>
      store.transaction(() => {
        follow("lost");
        refuse();
      }),
    ).toThrow("refused");
    expect(told.at(-1)).toBe("lost otherwise");
  });

  test("is undone in reverse order, so that each finds the state it left", async () => {
    stopTime();
    let value = "first";
    const change = (to: string) => {
      const before = value;
      value = to;
      store.afterCommit(
        () => {},
        () => {
          value = before;
        },
      );
    };
    const twice = (fails: () => void) => () => {
      change("second");
      store.transaction(() => change("third"));
      fails();
    };
    expect(() => store.transaction(twice(refuse))).toThrow("refused");
    expect(value).toBe("first");
    store.transaction(() => expect(() => store.transaction(twice(refuse))).toThrow("refused"));
    expect(value).toBe("first");
    store.sqlite.run("CREATE TABLE parents (id INTEGER PRIMARY KEY)");
    store.sqlite.run("CREATE TABLE children (id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)");
    await Promise.allSettled([
      store.commitSoon(() => change("second"), "full"),
      store.commitSoon(
        twice(() => {}),
        "full",
      ),
      store.commitSoon(() => store.sqlite.run("INSERT INTO children VALUES (7)"), "full"),
    ]);
    expect(value).toBe("first");
  });

  test("may open a transaction of its own", () => {
    store.transaction(() => store.afterCommit(() => store.transaction(() => write("after"))));
    expect(written()).toEqual(["after"]);
  });

  test("runs even if another fails; the failure is reported, and whoever made the change has made it", () => {
    const told: string[] = [];
    const made = store.transaction(() => {
      write("kept");
      store.afterCommit(refuse);
      store.afterCommit(() => told.push("second"));
      return "made";
    });
    expect([made, told, reported.splice(0)]).toEqual(["made", ["second"], ["refused"]]);
    expect(written()).toEqual(["kept"]);
  });
});

describe("a shared commit", () => {
  beforeEach(stopTime);

  test("does the works in the order added, and resolves each once it is committed", async () => {
    const results = await Promise.all(
      ["a", "b", "c"].map((note) =>
        store.commitSoon(() => {
          expect(store.sqlite.inTransaction).toBe(true);
          write(note);
          return note.toUpperCase();
        }, "full"),
      ),
    );
    expect(results).toEqual(["A", "B", "C"]);
    expect(written()).toEqual(["a", "b", "c"]);
  });

  test("lets accounts take turns, and does the works of each in the order added", async () => {
    const asked = ["busy 1", "busy 2", "busy 3", "quiet 1", "quiet 2"];
    await Promise.all(asked.map((note) => store.commitSoon(() => write(note), "process", note.split(" ")[0])));
    expect(written()).toEqual(["busy 1", "quiet 1", "busy 2", "quiet 2", "busy 3"]);
  });

  test("takes only so much work of one account, and that of the others after it", async () => {
    const commits: string[][] = [];
    const longWork = (note: string) => () => {
      nowMs += 5;
      commits.at(-1)?.push(note);
    };
    const begin = () => void commits.push([]);
    const first = store.commitSoon(begin, "process", "first");
    const works = ["busy 1", "busy 2"].map((note) => store.commitSoon(longWork(note), "process", "busy"));
    const quiet = store.commitSoon(() => void commits.at(-1)?.push("quiet"), "process", "quiet");
    void works[0]?.then(begin);
    await Promise.all([first, ...works, quiet]);
    expect(commits.flat()).toEqual(["busy 1", "quiet", "busy 2"]);
    expect(commits.find((one) => one.includes("busy 1"))).not.toContain("busy 2");
  });

  test("does nothing before the turn of the event loop ends", async () => {
    const done = store.commitSoon(() => write("later"), "process");
    expect(written()).toEqual([]);
    await done;
    expect(written()).toEqual(["later"]);
  });

  test("lets one work fail alone", async () => {
    const [before, failed, after] = await Promise.allSettled([
      store.commitSoon(() => write("before"), "full"),
      store.commitSoon(() => {
        write("lost");
        refuse();
      }, "full"),
      store.commitSoon(() => write("after"), "full"),
    ]);
    expect([before.status, failed.status, after.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(written()).toEqual(["before", "after"]);
  });

  test("reports a failing hook, and not to any of its works, which are made", async () => {
    const told: string[] = [];
    await Promise.all([
      store.commitSoon(() => {
        write("first");
        store.afterCommit(refuse);
      }, "full"),
      store.commitSoon(() => {
        write("second");
        store.afterCommit(() => told.push("second"));
      }, "full"),
    ]);
    expect([told, reported.splice(0)]).toEqual([["second"], ["refused"]]);
    expect(written()).toEqual(["first", "second"]);
  });

  test("that fails rejects every work and undoes its hooks", async () => {
    const told: string[] = [];
    store.sqlite.run("CREATE TABLE parents (id INTEGER PRIMARY KEY)");
    store.sqlite.run("CREATE TABLE children (id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)");
    // A deferred foreign key is checked by COMMIT itself.
    const works = await Promise.allSettled([
      store.commitSoon(() => {
        write("lost");
        store.afterCommit(
          () => told.push("then"),
          () => told.push("otherwise"),
        );
      }, "full"),
      store.commitSoon(() => store.sqlite.run("INSERT INTO children VALUES (7)"), "full"),
    ]);
    expect(works.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(told).toEqual(["otherwise"]);
    expect(written()).toEqual([]);
    await store.commitSoon(() => write("next"), "process");
    expect(written()).toEqual(["next"]);
  });

  test("that SQLite rolls back, as on a full disk, fails whole: later works too", async () => {
    const told: string[] = [];
    const work = (note: string) => () => {
      store.afterCommit(
        () => told.push(`${note} then`),
        () => told.push(`${note} otherwise`),
      );
      write(note);
    };
    const { page_count } = store.sqlite.query<{ page_count: number }, []>("PRAGMA page_count").get() ?? {};
    store.sqlite.run(`PRAGMA max_page_count = ${page_count}`);
    const works = await Promise.allSettled(
      ["small", "x".repeat(100_000), "behind"].map((note) => store.commitSoon(work(note), "full")),
    );
    expect(works.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(told.map((line) => line.replace(/x+/, "large"))).toEqual(["large otherwise", "small otherwise"]);
    expect(written()).toEqual([]);
    store.sqlite.run("PRAGMA max_page_count = 1000000");
    await store.commitSoon(() => write("next"), "full");
    expect(written()).toEqual(["next"]);
  });

  test("answers a durable work when the disk has it, and the others when it is made", async () => {
    const disk = openOnSlowDisk();
    const done: string[] = [];
    const note = (durability: Durability) => store.commitSoon(() => write(durability), durability);
    const durable = note("full").then(() => done.push("full"));
    await note("process");
    expect(written()).toEqual(["full", "process"]);
    await disk.asked();
    expect(done).toEqual([]);
    disk.finish();
    await durable;
    expect(done).toEqual(["full"]);
  });

  test("runs what follows it before the disk has it", async () => {
    const disk = openOnSlowDisk();
    const { promise: followed, resolve } = Promise.withResolvers<void>();
    const durable = store.commitSoon(() => store.afterCommit(resolve), "full");
    await followed;
    await disk.asked();
    disk.finish();
    await durable;
  });

  test("has the disk at work while what follows it runs, once for all of its works", async () => {
    const disk = openOnSlowDisk();
    const syncsBefore: number[] = [];
    const writeAndFollow = (note: string) => {
      write(note);
      store.afterCommit(() => syncsBefore.push(disk.syncs()));
    };
    const works = [
      store.commitSoon(() => writeAndFollow("a"), "full"),
      store.commitSoon(() => writeAndFollow("b"), "process"),
      store.commitSoon(() => writeAndFollow("c"), "full"),
    ];
    await disk.asked();
    disk.finish();
    await Promise.all(works);
    expect(syncsBefore).toEqual([1, 1, 1]);
    expect(disk.syncs()).toBe(1);
  });

  test("asks nothing of the disk where nothing was written", async () => {
    const disk = openOnSlowDisk();
    await expect(store.commitSoon(refuse, "full")).rejects.toThrow("refused");
    expect(disk.syncs()).toBe(0);
  });

  test("is not weakened by a shared one before it", async () => {
    const durability = () => store.sqlite.query<{ synchronous: number }, []>("PRAGMA synchronous").get()?.synchronous;
    expect(await store.commitSoon(durability, "full")).toBe(1);
    expect(store.transaction(durability)).toBe(2);
  });

  test("that the disk did not keep is not acknowledged, nor is anything after it", async () => {
    const disk = openOnSlowDisk();
    const failed = store.commitSoon(() => write("lost"), "full");
    await disk.asked();
    disk.fail(new Error("EIO"));
    await expect(failed).rejects.toThrow("the disk did not keep what was written");
    expect(() => store.transaction(() => write("next"))).toThrow("restart the server");
    await expect(store.commitSoon(() => write("next"), "process")).rejects.toThrow("restart the server");
  });

  test("is made before the database closes, and refused afterwards", async () => {
    const done = store.commitSoon(() => write("last"), "process");
    store.close();
    await done;
    await expect(store.commitSoon(() => write("too late"), "full")).rejects.toThrow("closed");
    store.close();
    // The turn in which the commit was due ends with the database closed: nothing may throw there.
    await new Promise((resolve) => setImmediate(resolve));
    store = openStore(dataDir);
    expect(written()).toEqual(["last"]);
  });
});

describe("opening", () => {
  test("creates the folder and the database for their owner only", () => {
    const fresh = join(dataDir, "a/b");
    openStore(fresh).close();
    expect(statSync(fresh).mode & 0o777).toBe(0o700);
    expect(statSync(join(fresh, "roost.db")).mode & 0o777).toBe(0o600);
  });

  const damages: [string, (path: string) => void][] = [
    ["is no database", (path) => writeFileSync(path, "this was a database once ".repeat(400))],
    ["was cut off", (path) => truncateSync(path, Math.floor(statSync(path).size / 8192) * 4096)],
    [
      "has a page of noise",
      (path) => {
        const bytes = Buffer.from(readFileSync(path));
        bytes.fill(0xa5, 4096, 8192);
        writeFileSync(path, bytes);
      },
    ],
  ];
  test.each(damages)("a file that %s is refused, saying how to fix it", (_, damage) => {
    const folder = join(dataDir, "damaged");
    const path = join(folder, "roost.db");
    mkdirSync(folder);
    store.sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
    copyFileSync(join(dataDir, "roost.db"), path);
    damage(path);
    const before = Bun.hash(readFileSync(path));
    expect(() => openStore(folder)).toThrow(
      /roost\.db is damaged \(.+\); stop the server and restore the latest copy of the data folder/,
    );
    expect(Bun.hash(readFileSync(path))).toBe(before);
  });
});

test("many works at once take several commits, in order, with other turns between them", async () => {
  const order: string[] = [];
  const works = Array.from({ length: 5 }, (_, at) =>
    store.commitSoon(() => {
      order.push(`work ${at}`);
      // Long enough to fill a commit alone.
      for (const until = performance.now() + 9; performance.now() < until; );
    }, "full"),
  );
  let turns = 0;
  const count = () => {
    turns++;
    if (order.length < 5) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(works);
  expect(order).toEqual(["work 0", "work 1", "work 2", "work 3", "work 4"]);
  expect(turns).toBeGreaterThan(3);
});

test("closing commits all pending work, in however many commits", async () => {
  const works = Array.from({ length: 3 }, () =>
    store.commitSoon(() => {
      for (const until = performance.now() + 9; performance.now() < until; );
      return "done";
    }, "process"),
  );
  store.close();
  expect(await Promise.all(works)).toEqual(["done", "done", "done"]);
});

describe("a read that asks once per snapshot", () => {
  let asked = 0;
  const openRead = () => {
    asked = 0;
    return store.oncePerSnapshot((note) => {
      asked++;
      return store.sqlite.query<{ note: string }, [string]>("SELECT note FROM notes WHERE note = ?").get(note);
    });
  };

  test("asks for each key once while reads share a snapshot, and each time where they do not", async () => {
    const find = openRead();
    store.transaction(() => write("a"));
    for (let time = 0; time < 3; time++) expect(find("a")).toEqual({ note: "a" });
    expect(asked).toBe(3);
    store.readTogether();
    for (let time = 0; time < 3; time++) expect(find("a")).toEqual({ note: "a" });
    expect(asked).toBe(4);
  });

  test("sees what this process writes, at once", () => {
    const find = openRead();
    store.transaction(() => write("a"));
    store.readTogether();
    expect(find("a")).toEqual({ note: "a" });
    store.transaction(() => {
      store.sqlite.run("DELETE FROM notes");
      expect(find("a")).toBeNull();
    });
    expect(find("a")).toBeNull();
    store.readTogether();
    expect(find("a")).toBeNull();
  });

  test("sees what another process writes, from the next turn of the event loop on", async () => {
    const find = openRead();
    store.transaction(() => write("a"));
    store.readTogether();
    expect(find("a")).toEqual({ note: "a" });
    const other = new Database(join(dataDir, "roost.db"));
    other.run("DELETE FROM notes");
    other.close();
    await new Promise(setImmediate);
    store.readTogether();
    expect(find("a")).toBeNull();
  });
});
