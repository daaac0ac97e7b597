import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFoundation } from "../../src/app/foundation.ts";
import { createBackup } from "../../src/backup/create.ts";
import { locate } from "../../src/backup/destination.ts";
import { canGiveToNobody, NOBODY } from "../support/nobody.ts";
import { addAgent } from "./folders.ts";

const isRoot = process.getuid?.() === 0;

let home: string;
let dataDir: string;
let workspace: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roost-unreadable-"));
  dataDir = join(home, "data");
  openFoundation({ dataDir }).store.close();
  addAgent(dataDir, "a");
  workspace = join(dataDir, "instances/inst_a/agents/a");
  mkdirSync(join(workspace, "notes"), { recursive: true });
  for (const name of ["a.md", "secret.md", "notes/b.md"]) writeFileSync(join(workspace, name), name);
  writeFileSync(join(dataDir, "roost.toml"), "");
});
afterEach(() => {
  Bun.spawnSync(["chmod", "-R", "u+rwx", home]);
  rmSync(home, { recursive: true, force: true });
});

/** Backs up as somebody to whom something may be forbidden, and returns the error. */
async function failure(passphrase: string | null): Promise<string> {
  if (isRoot) {
    const all = readdirSync(home, { recursive: true }).map((name) => join(home, String(name)));
    for (const path of [home, ...all]) chownSync(path, NOBODY, NOBODY);
    process.seteuid?.(NOBODY);
  }
  try {
    const file = join(home, "kept/b.tar.zst");
    return await createBackup({ dataDir, ...locate(file), withKeys: true, passphrase }).then(
      () => "none",
      (error: Error) => error.message,
    );
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

const WHY = "cannot be read: permission denied; run as the user who owns it, or let the data folder's owner read it";

test.skipIf(isRoot && !canGiveToNobody).each([
  ["a file of a workspace", "instances/inst_a/agents/a/secret.md", null],
  ["a file of a workspace, for an encrypted backup", "instances/inst_a/agents/a/secret.md", "pass"],
  ["a folder of a workspace", "instances/inst_a/agents/a/notes", null],
  ["a whole workspace", "instances/inst_a/agents/a", null],
  ["the settings, for a backup with the keys", "roost.toml", null],
])("%s that cannot be read fails the backup, which names it and leaves no file", async (_, name, passphrase) => {
  const path = join(dataDir, name);
  chmodSync(path, 0o000);
  expect(await failure(passphrase)).toBe(`${path} ${WHY}`);
  expect([readdirSync(join(home, "kept")), readdirSync(join(dataDir, "backups"))]).toEqual([[], []]);
});

/** Takes an upload, and what is given back. */
const bucket = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ method }) =>
    method === "POST"
      ? new Response("<UploadId>u</UploadId>")
      : new Response(null, { status: method === "DELETE" ? 204 : 404 }),
});

test("nor is a bucket blamed for a file that cannot be read", async () => {
  const program = `
    import { openDestination } from ${JSON.stringify(join(import.meta.dir, "../../src/backup/destination.ts"))};
    import { writeArchive } from ${JSON.stringify(join(import.meta.dir, "../../src/backup/archive.ts"))};
    import { filesBelow, folderAt } from ${JSON.stringify(join(import.meta.dir, "../../src/backup/files.ts"))};
    const [folder] = process.argv.slice(-1);
    const archive = await writeArchive(filesBelow(folderAt(folder), "x"), () => ({}), null);
    const write = openDestination("s3://kept/host").write("a.tar.zst", archive, new AbortController().signal);
    await write.catch((error) => console.log(error.message));
    process.exit();`;
  const folder = join(dataDir, "roost.toml");
  const env = {
    AWS_ENDPOINT: `http://127.0.0.1:${bucket.port}`,
    AWS_ACCESS_KEY_ID: "any",
    AWS_SECRET_ACCESS_KEY: "any",
  };
  const child = Bun.spawn([process.execPath, "-e", program, folder], { env, stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toBe(`${folder} cannot be read: part of its path is a file\n`);
  await bucket.stop(true);
});
