import { expect, test } from "bun:test";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary } from "./support/binary.ts";
import { canCutNetwork, OFFLINE } from "./support/offline.ts";

test.skipIf(Bun.which("curl") === null)(
  "the README's conversation, with the binary alone and no network (where it can be cut off), ends with tokens from the embedded model",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "roost-alone-"));
    try {
      await copyFile(await buildBinary(), join(folder, "roost"));
      const program = join(import.meta.dir, "readme-conversation.ts");
      const { stdout, stderr } = Bun.spawnSync([
        ...(canCutNetwork ? OFFLINE : []),
        process.execPath,
        program,
        join(folder, "roost"),
      ]);
      expect(stderr.toString()).toBe("");
      const { asked, said } = JSON.parse(stdout.toString());
      expect(asked).toBe('{"sent":true,"expiresInSeconds":600}');
      expect(said).toStartWith("retry: 2000\n\nid: 1\nevent: run.queued\n");
      // A short answer comes all at once: its beginning is checked before it is shown.
      expect(said).toMatch(/^event: message\.delta$/m);
      expect(said).toContain("event: run.completed");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
