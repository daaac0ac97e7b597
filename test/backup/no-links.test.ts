import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const source = (path: string) => JSON.stringify(join(import.meta.dir, "../..", path));

/** To this process, each file system is one without hard links, which refuses them with EPERM. */
const PROGRAM = `
  import { writeFileSync } from "node:fs";
  import { openDestination } from ${source("src/backup/destination.ts")};
  import { streamOf } from ${source("src/lib/stream-of.ts")};
  import { openSystemCalls } from ${source("src/sandbox/system-calls.ts")};
  import { refuseCalls } from ${source("test/support/refused-call.ts")};

  const [folder, ...meanwhile] = process.argv.slice(2);
  async function* content() {
    yield new TextEncoder().encode("whole");
    for (const name of meanwhile) writeFileSync(folder + "/" + name, "of somebody else");
  }
  refuseCalls(openSystemCalls(), ...(process.arch === "arm64" ? [37] : [86, 265]));
  const write = openDestination(folder).write("a.tar.zst", streamOf(content()), new AbortController().signal);
  console.log(await write.catch((error) => error.message));`;

test.skipIf(process.platform !== "linux")("a file system without hard links keeps a backup too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "roost-no-links-"));
  const program = join(folder, "program.ts");
  const kept = join(folder, "backups");
  const archive = join(kept, "a.tar.zst");
  const run = async (...meanwhile: string[]) => {
    const child = Bun.spawn([process.execPath, program, kept, ...meanwhile], { stdout: "pipe" });
    return (await new Response(child.stdout).text()).trim();
  };
  try {
    writeFileSync(program, PROGRAM);
    expect(await run()).toBe("5");
    expect(readFileSync(archive, "utf8")).toBe("whole");
    rmSync(archive);
    expect(await run("a.tar.zst")).toStartWith(`${archive} exists already`);
    expect(readFileSync(archive, "utf8")).toBe("of somebody else");
    expect(readdirSync(kept)).toEqual(["a.tar.zst"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
