import { expect, test } from "bun:test";
import { join } from "node:path";

test("the program in examples/ gets 402, pays the quote, and gets its instance", async () => {
  const script = join(import.meta.dir, "../examples/on-anvil.ts");
  const child = Bun.spawn([process.execPath, script], { stdio: ["ignore", "pipe", "pipe"] });
  const [code, output, errors] = await Promise.all([
    child.exited,
    Bun.readableStreamToText(child.stdout),
    Bun.readableStreamToText(child.stderr),
  ]);
  expect({ code, errors }).toEqual({ code: 0, errors: "" });
  expect(output).toMatch(/^402 {2}the balance is 0\.000000 USDC/m);
  expect(output).toMatch(/^paid 1\.00\d{4} USDC on base to 0x[0-9a-fA-F]{40}, 0x[0-9a-f]{64}$/m);
  expect(output.trimEnd()).toMatch(/\n201 {2}inst_[0-9a-f]{32} is running$/);
});
