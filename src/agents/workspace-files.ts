import { and, asc, eq, gt, lt, sql } from "drizzle-orm";
import { lazily } from "../lib/lazily.ts";
import { prepared } from "../storage/prepared.ts";
import type { Db } from "../storage/store.ts";
import { foldName, type PathEntry, type StandingNames } from "../workspace/file-name.ts";
import type { Totals } from "../workspace/workspace.ts";
import { agents, workspaceFiles } from "./schema.ts";

export interface IndexedFile {
  name: string;
  size: number;
  /** Milliseconds since 1970. */
  updatedAt: number;
}

/** The index of workspace files in the database. Each query reads only the rows that it returns. */
export interface WorkspaceFiles {
  find(agentId: string, name: string): IndexedFile | undefined;
  /** By name (by code unit), after `after`. */
  page(agentId: string, after: string, limit: number): IndexedFile[];
  /** The first files in a folder, and in those in it, by name. */
  within(agentId: string, folder: string, limit: number): IndexedFile[];
  /**
   * Call this, like all changes, in a transaction. `isTainted` says whether what was written may be a stranger's; without
   * it, that stays as it is.
   */
  put(agentId: string, file: IndexedFile, isTainted?: boolean): void;
  /** Of these names, those of files that a tainted run wrote. */
  taintedOf(agentId: string, names: readonly string[]): string[];
  drop(agentId: string, name: string): void;
  /** The workspace's totals. */
  totals(agentId: string): Totals;
  noteIndexed(agentId: string, now: number): void;
  /** The names of a workspace, except those about to be removed. */
  standing(agentId: string, without: ReadonlySet<string>): StandingNames;
}

/** The character after `/`: the names in a folder sort before it. */
const AFTER_SLASH = "0";
/** No name is after it. */
const LAST = "\u{10FFFF}";

export function createWorkspaceFiles(db: Db): WorkspaceFiles {
  const p = sql.placeholder;
  const { name, size, updatedAt } = workspaceFiles;
  const ofAgent = eq(workspaceFiles.agentId, p("agentId"));
  const folded = sql`lower(${name})`;
  const found = prepared(db, () =>
    db
      .select({ name, size, updatedAt })
      .from(workspaceFiles)
      .where(and(ofAgent, eq(name, p("name")))),
  );
  const paged = prepared(db, () =>
    db
      .select({ name, size, updatedAt })
      .from(workspaceFiles)
      .where(and(ofAgent, gt(name, p("after")), lt(name, p("end"))))
      .orderBy(asc(name))
      .limit(p("limit")),
  );
  const put = prepared(db, () =>
    db
      .insert(workspaceFiles)
      .values({ agentId: p("agentId"), name: p("name"), size: p("size"), updatedAt: p("updatedAt") })
      .onConflictDoUpdate({
        target: [workspaceFiles.agentId, name],
        set: { size: sql`excluded.size`, updatedAt: sql`excluded.updated_at` },
      }),
  );
  const putWritten = prepared(db, () =>
    db
      .insert(workspaceFiles)
      .values({
        agentId: p("agentId"),
        name: p("name"),
        size: p("size"),
        updatedAt: p("updatedAt"),
        tainted: p("tainted"),
      })
      .onConflictDoUpdate({
        target: [workspaceFiles.agentId, name],
        set: { size: sql`excluded.size`, updatedAt: sql`excluded.updated_at`, tainted: sql`excluded.tainted` },
      }),
  );
  const isMarked = sql`${workspaceFiles.tainted} = 1`;
  const marked = prepared(db, () =>
    db
      .select({ name })
      .from(workspaceFiles)
      .where(and(ofAgent, eq(name, p("name")), isMarked)),
  );
  const firstMarked = prepared(db, () =>
    db.select({ name }).from(workspaceFiles).where(and(ofAgent, isMarked)).orderBy(asc(name)).limit(1),
  );
  /** Most hosts have none, and their runs pay nothing for it. */
  const anyMarked = and(isMarked, gt(workspaceFiles.agentId, ""));
  const hadMarked = lazily(
    () => db.select({ name }).from(workspaceFiles).where(anyMarked).limit(1).get() !== undefined,
  );
  let hasMarked = false;
  const drop = prepared(db, () => db.delete(workspaceFiles).where(and(ofAgent, eq(name, p("name")))));
  const totals = prepared(db, () =>
    db
      .select({ files: agents.fileCount, bytes: agents.fileBytes })
      .from(agents)
      .where(eq(agents.agentId, p("agentId"))),
  );
  const names = (condition: ReturnType<typeof sql>) =>
    db.select({ name }).from(workspaceFiles).where(and(ofAgent, condition)).limit(p("limit")).prepare();
  const sameFolded = lazily(() => names(sql`${folded} = ${p("folded")}`));
  const inFolder = lazily(() => names(sql`${name} > ${p("from")} AND ${name} < ${p("to")}`));
  const inFolded = lazily(() => names(sql`${folded} > ${p("from")} AND ${folded} < ${p("to")}`));

  return {
    find: (agentId, name) => found.get({ agentId, name }),
    page: (agentId, after, limit) => paged.all({ agentId, after, end: LAST, limit }),
    within: (agentId, folder, limit) => paged.all({ agentId, after: `${folder}/`, end: folder + AFTER_SLASH, limit }),
    put(agentId, file, isTainted) {
      if (isTainted === undefined) put.run({ agentId, ...file });
      else putWritten.run({ agentId, ...file, tainted: isTainted });
      hasMarked ||= isTainted === true;
    },
    // Most workspaces have none, which one look shows.
    taintedOf: (agentId, names) =>
      !(hasMarked || hadMarked()) || firstMarked.get({ agentId }) === undefined
        ? []
        : names.filter((name) => marked.get({ agentId, name }) !== undefined),
    drop: (agentId, name) => void drop.run({ agentId, name }),
    totals: (agentId) => totals.get({ agentId }) ?? { files: 0, bytes: 0 },
    noteIndexed: (agentId, now) =>
      void db.update(agents).set({ indexedAt: now }).where(eq(agents.agentId, agentId)).run(),
    standing(agentId, without) {
      // One more than may be removed: if any stays, it is among them.
      const limit = without.size + 1;
      const staying = (rows: { name: string }[]) => rows.find((row) => !without.has(row.name))?.name;
      const beneath = (path: string) => ({ from: `${path}/`, to: `${path}${AFTER_SLASH}` });
      return {
        has: (name) => !without.has(name) && found.get({ agentId, name }) !== undefined,
        at(step): PathEntry | undefined {
          const { spelling, isFolder } = step;
          const path = foldName(spelling);
          if (isFolder && staying(inFolder().all({ agentId, limit, ...beneath(spelling) })) !== undefined) return step;
          const file = staying(sameFolded().all({ agentId, limit, folded: path }));
          if (file !== undefined) return { spelling: file, isFolder: false };
          const inside = staying(inFolded().all({ agentId, limit, ...beneath(path) }));
          return inside === undefined ? undefined : { spelling: inside.slice(0, spelling.length), isFolder: true };
        },
      };
    },
  };
}
