import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { BUILDS, unpackBuild } from "../backup/earlier-builds/unpack.ts";
import { startHub } from "../support/hub.ts";
import { canGiveToNobody, NOBODY } from "../support/nobody.ts";
import { type Home, makeHome, run } from "./command-line.ts";

const TINY = resolve(import.meta.dir, "../models/tiny-model");
const REPOSITORY = "tests/Tiny-Model";
const hub = await startHub(REPOSITORY, TINY);

let home: Home;
beforeAll(() => {
  home = makeHome();
  Bun.spawnSync(["chmod", "755", home.folder]);
});
afterAll(async () => {
  home.remove();
  await hub.close();
});

/** What in the folder does not belong to the user whose server runs on it. */
const foreignIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => lstatSync(join(folder, name)).uid !== NOBODY,
  );

function give(folder: string): void {
  Bun.spawnSync(["chown", "-R", `${NOBODY}:${NOBODY}`, folder]);
}

describe.skipIf(!canGiveToNobody)("root's commands in the data folder of another user", () => {
  test("what they make belongs to that user", async () => {
    give(home.dataDir);
    expect(await run(home, ["invite", "create", "--data", home.dataDir])).toMatchObject({ code: 0 });
    expect(foreignIn(home.dataDir)).toEqual([]);
    expect(await run(home, ["backup", "create", "kept.tar", "--data", home.dataDir])).toMatchObject({ code: 0 });
    expect(readdirSync(home.dataDir)).toContain("backups");
    expect(foreignIn(home.dataDir)).toEqual([]);
  });

  test("so does the copy before a migration, and what a rollback puts back", async () => {
    const dataDir = join(home.folder, "earlier/data");
    await unpackBuild(BUILDS[0] ?? "", join(home.folder, "earlier"));
    give(dataDir);
    expect(await run(home, ["invite", "list", "--data", dataDir])).toMatchObject({ code: 0 });
    expect(readdirSync(join(dataDir, "backups"))).toContainEqual(expect.stringContaining("before-migration"));
    expect(foreignIn(dataDir)).toEqual([]);
    expect(await run(home, ["rollback", "--data", dataDir])).toMatchObject({ code: 0 });
    const kept = readdirSync(join(dataDir, "backups")).filter((name) => name.startsWith("before-rollback"));
    expect(kept).toHaveLength(1);
    expect(foreignIn(dataDir)).toEqual([]);
  });

  test("so do a model, and what was unpacked to try it", async () => {
    expect(await run(home, ["models", "import", TINY, "--data", home.dataDir])).toMatchObject({ code: 0 });
    expect(
      await run(home, ["models", "pull", REPOSITORY, "--name", "pulled", "--data", home.dataDir], {
        env: { ROOST_MODEL_HUB: hub.url },
      }),
    ).toMatchObject({ code: 0 });
    expect(readdirSync(home.dataDir)).toEqual(expect.arrayContaining(["cache", "models"]));
    expect(foreignIn(home.dataDir)).toEqual([]);
  });

  test("settings that root has written stay readable to the server, and doctor finds nothing wrong with that", async () => {
    const dataDir = join(home.folder, "settings");
    const settings = join(dataDir, "roost.toml");
    mkdirSync(dataDir, { mode: 0o700 });
    give(dataDir);
    writeFileSync(settings, 'networks = "base"');
    chmodSync(settings, 0o644);
    expect(await run(home, ["invite", "create", "--data", dataDir])).toMatchObject({ code: 0 });
    expect(lstatSync(settings).mode & 0o777).toBe(0o644);
    const disk = async () => {
      const found = (await run(home, ["doctor", "--data", dataDir, "--json"])).json();
      return found.find(({ check }: { check: string }) => check === "disk");
    };
    expect(await disk()).toMatchObject({ ok: true });
    chmodSync(settings, 0o600);
    expect(await disk()).toMatchObject({ ok: false, mend: `chown ${NOBODY}:${NOBODY} '${settings}'` });
  });

  test("what a restore puts there is root's, and it says how to give it away, as doctor does", async () => {
    const source = join(home.folder, "source");
    mkdirSync(source);
    await run(home, ["invite", "create", "--data", source]);
    await run(home, ["backup", "create", "whole.tar", "--data", source]);
    const into = join(home.folder, "into");
    mkdirSync(into);
    give(into);
    const restored = await run(home, ["backup", "restore", "whole.tar", "--data", into, "--json"]);
    expect(restored.json()).toMatchObject({ dataDir: into });
    expect(restored.errors).toContain(`chown -R ${NOBODY}:${NOBODY} '${into}'`);
    expect((await run(home, ["doctor", "--data", into])).output).toContain(`chown ${NOBODY}:${NOBODY}`);
    give(into);
    mkdirSync(join(into, "models"));
    expect((await run(home, ["doctor", "--data", into])).output.replaceAll(/\s+/g, " ")).toContain(
      `chown -R ${NOBODY}:${NOBODY} '${into}/models'`,
    );
  });
});
