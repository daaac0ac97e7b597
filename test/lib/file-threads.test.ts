import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Opens pipes that nobody writes to, each of which keeps a thread, and then asks for something else. */
const PROGRAM = `
  import { open, stat } from "node:fs/promises";
  import { moreFileThreads } from ${JSON.stringify(resolve(import.meta.dir, "../../src/lib/file-threads.ts"))};
  moreFileThreads();
  for (const pipe of process.argv.slice(2)) void open(pipe, "r");
  setTimeout(() => process.exit(1), 30_000);
  await stat("/");
  console.log("answered");
  process.exit(0);
`;

test.skipIf(process.platform !== "linux")(
  "however few cores there are, some calls that wait for a disk do not keep others from theirs",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "roost-threads-"));
    try {
      const pipes = [1, 2, 3, 4, 5].map((number) => join(folder, `pipe-${number}`));
      expect(Bun.spawnSync(["mkfifo", ...pipes]).exitCode).toBe(0);
      const [source, outfile] = [join(folder, "program.ts"), join(folder, "program")];
      await Bun.write(source, PROGRAM);
      // As the binary is: from source, Bun has used these threads to load the program.
      await Bun.build({ entrypoints: [source], compile: { outfile } });
      const { UV_THREADPOOL_SIZE: _, ...env } = process.env;
      const child = Bun.spawn([outfile, ...pipes], { env, stdio: ["ignore", "pipe", "inherit"] });
      expect(await new Response(child.stdout).text()).toBe("answered\n");
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
