import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkInBackground } from "../../src/storage/background-check.ts";
import { openStore } from "../../src/storage/store.ts";
import { startBinary } from "../support/binary.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A data folder whose database is larger than what is checked before a start. */
function largeFolder(): { dataDir: string; path: string } {
  const dataDir = mkdtempSync(join(tmpdir(), "roost-large-"));
  folders.push(dataDir);
  openStore(dataDir).close();
  const path = join(dataDir, "roost.db");
  using sqlite = new Database(path);
  const mail = sqlite.prepare(
    "INSERT INTO outbox (to_address, subject, text, created_at) VALUES ('a@b.c', 's', printf('%.*c', 1000000, 'x'), ?)",
  );
  for (let number = 0; number < 40; number++) mail.run(Date.now());
  sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
  return { dataDir, path };
}

test("a damaged large database is found beside the requests, and ends the server as it would have kept it from starting", async () => {
  const { dataDir, path } = largeFolder();
  const { size } = statSync(path);
  const file = openSync(path, "r+");
  writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, Math.floor(size / 8192) * 4096);
  closeSync(file);
  await using server = await startBinary({ dataDir });
  expect(await server.process.exited).toBe(1);
  // All of its output has been read.
  await server.stop();
  expect(server.logs.map(({ msg }) => msg)).toContainEqual(
    expect.stringMatching(
      /roost\.db is damaged \(.+\); stop the server and restore the latest copy of the data folder/,
    ),
  );
  expect(server.logs.at(-1)).toMatchObject({ event: "stopped" });
});

test("an undamaged large database is said to be so, and a stop does not wait for the check", async () => {
  const { dataDir } = largeFolder();
  const told = Promise.withResolvers<unknown>();
  const log = { info: told.resolve, warn: told.reject };
  const check = checkInBackground(dataDir, log);
  expect(await told.promise).toEqual({ event: "database_checked" });
  await check.stop();
  await using server = await startBinary({ dataDir });
  expect(await server.stop()).toBe(0);
});
