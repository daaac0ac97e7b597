import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { canServeNames, SILENT, startAttackersNames } from "../threats/name-server.ts";

const source = (path: string): string => JSON.stringify(resolve(import.meta.dir, "../../src", path));

/** A program of its own, which has few threads that wait, and asks the attacker's name server. */
async function withNames(program: string, under: string[] = []): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "roost-resolve-"));
  const names = await startAttackersNames();
  try {
    const file = join(folder, "program.ts");
    writeFileSync(
      file,
      `import { resolveByServers, resolveBySystem } from ${source("egress/resolve.ts")};\n${program}`,
    );
    const command = [...names.under, ...under, process.execPath, file];
    const child = Bun.spawn(command, {
      env: { ...process.env, UV_THREADPOOL_SIZE: "4" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    return await new Response(child.stdout).text();
  } finally {
    names.close();
    rmSync(folder, { recursive: true });
  }
}

const NEVER = "const { signal } = new AbortController();";

test.skipIf(!canServeNames())(
  "however many names are asked of a name server that is silent, what waits for the disk is not kept from it",
  async () => {
    const told = await withNames(`${NEVER}
      import { open } from "node:fs/promises";
      let ended = 0;
      for (const name of ${JSON.stringify(SILENT)}) resolveByServers(name, signal).catch(() => ended++);
      await new Promise((resolve) => setTimeout(resolve));
      await (await open(import.meta.path)).datasync();
      console.log("synced", ended);
      process.exit(0);`);
    expect(told).toBe("synced 0\n");
  },
);

test.skipIf(!canServeNames())("a lookup that nobody waits for any more ends", async () => {
  const told = await withNames(`
    const end = new AbortController();
    const asked = resolveByServers("${SILENT[0]}", end.signal);
    setTimeout(() => end.abort(), 50);
    console.log(await asked.catch(({ code }) => code));`);
  expect(told).toBe("ECANCELLED\n");
});

test.skipIf(!canServeNames())("of a name that the operator gives there is one lookup at a time", async () => {
  const told = await withNames(`${NEVER}
    const [one, other] = [resolveBySystem("named.test", signal), resolveBySystem("named.test", signal)];
    console.log(one === other, await one);
    console.log(one === resolveBySystem("named.test", signal));`);
  expect(told).toBe('true [ "127.0.0.1" ]\nfalse\n');
});

test.skipIf(!canServeNames())("the hosts file comes first, whatever else is in it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-hosts-"));
  const hosts = join(folder, "hosts");
  writeFileSync(
    hosts,
    [
      "# 9.9.9.1 half.test",
      "9.9.9.2\tone.test two.test # half.test",
      "  9.9.9.3  other  Loopback.Test\t",
      "9.9.9.4 loopback.test#",
      "9.9.9.5 not-loopback.test loopback.test.example",
      "",
    ].join("\n"),
  );
  const under = ["sh", "-c", `mount --bind ${hosts} /etc/hosts && exec "$@"`, "with"];
  const told = await withNames(
    `${NEVER}
    const names = ["loopback.test", "two.test", "half.test", "nowhere.test"];
    for (const name of names) console.log(await resolveByServers(name, signal).catch(({ code }) => code));`,
    under,
  );
  rmSync(folder, { recursive: true });
  expect(told.trim().split("\n")).toEqual([
    '[ "9.9.9.3", "9.9.9.4" ]',
    '[ "9.9.9.2" ]',
    '[ "8.8.8.8", "127.0.0.1" ]',
    "ENOTFOUND",
  ]);
});
