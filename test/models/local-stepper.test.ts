import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { CHAT_MODEL, CHAT_MODEL_FILE, locateModelFiles } from "../../src/models/local/files.ts";
import { SMOLLM2, type Stepper } from "../../src/models/local/stepper.ts";
import { EMBEDDED_FORM, openFfiStepper } from "../../src/models/local/stepper-ffi.ts";

const tokens = Array.from({ length: 160 }, (_, i) => 300 + i * 7);
const other = tokens.map((token) => token + 11_000);
let stepper: Stepper;

beforeAll(async () => {
  const files = await locateModelFiles("/not-used-from-source");
  const modelFile = join(files.modelsFolder, CHAT_MODEL, CHAT_MODEL_FILE);
  stepper = await openFfiStepper(files.library, { modelFile, threads: 1, slots: 3, shape: SMOLLM2 }, EMBEDDED_FORM);
});
afterAll(() => {
  for (const slot of [0, 1, 2]) stepper.discard(slot);
});

/** The logits after two chunks and a token, as bytes of their own. */
async function run(slot: number, between: () => Promise<unknown> = async () => {}): Promise<Float32Array> {
  await stepper.step(slot, 0, tokens.slice(0, 128));
  await between();
  await stepper.step(slot, 128, tokens.slice(128, 159));
  await between();
  return (await stepper.step(slot, 159, tokens.slice(159))).slice();
}

test("the result does not depend on what other slots do, to the last bit", async () => {
  const alone = await run(0);
  let past = 0;
  const beside = await run(1, async () => {
    await stepper.step(2, past, other.slice(past, past + 80));
    past += 80;
  });
  expect(Buffer.from(beside.buffer).equals(Buffer.from(alone.buffer))).toBe(true);
});

test("copied rows continue like the original ones", async () => {
  await run(0);
  const expected = (await stepper.step(0, 140, [42])).slice();
  await run(0);
  stepper.discard(2);
  stepper.copyRows(0, 2, 140);
  const copied = await stepper.step(2, 140, [42]);
  expect(Buffer.from(copied.slice().buffer).equals(Buffer.from(expected.buffer))).toBe(true);
});

test("rows beyond the prefix that a slot was rewound to are not seen", async () => {
  await stepper.step(1, 0, other);
  const rewound = await run(1);
  const fresh = await run(0);
  expect(Buffer.from(rewound.buffer).equals(Buffer.from(fresh.buffer))).toBe(true);
});

test("rows that are kept stay as they are when the others are discarded", async () => {
  await run(0);
  const expected = (await stepper.step(0, 140, [42])).slice();
  await run(1);
  await stepper.step(1, 160, other);
  stepper.discard(1, 140);
  const kept = await stepper.step(1, 140, [42]);
  expect(Buffer.from(kept.slice().buffer).equals(Buffer.from(expected.buffer))).toBe(true);
});

test("a full context is refused", async () => {
  await expect(stepper.step(0, 2_040, tokens.slice(0, 9))).rejects.toThrow(RangeError);
});
