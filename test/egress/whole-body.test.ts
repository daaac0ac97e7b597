import { expect, test } from "bun:test";
import { createWholeBodies } from "../../src/egress/whole-body.ts";

const KIB = 1024;
const never = new AbortController().signal;

/** A body that comes in two pieces, the second when it is let go. */
function inTwoPieces(kib: number) {
  const gate = Promise.withResolvers<void>();
  const body = {
    goesOn: false,
    letGo: gate.resolve,
    async *[Symbol.asyncIterator]() {
      yield Buffer.alloc(kib * KIB, "a");
      body.goesOn = true;
      await gate.promise;
      yield Buffer.from("end");
    },
  };
  return body;
}
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("two large answers of an account arrive at once, the others in turn, and another account's beside them", async () => {
  const readWhole = createWholeBodies();
  const bodies = [1, 2, 3, 4].map(() => inTwoPieces(300));
  const reading = bodies.map((body) => readWhole(body, "a", never));
  await settled();
  expect(bodies.map(({ goesOn }) => goesOn)).toEqual([true, true, false, false]);

  const others = inTwoPieces(300);
  const read = readWhole(others, "b", never);
  await settled();
  expect(others.goesOn).toBe(true);

  bodies[1]?.letGo();
  await reading[1];
  await settled();
  expect(bodies.map(({ goesOn }) => goesOn)).toEqual([true, true, true, false]);

  for (const { letGo } of [...bodies, others]) letGo();
  const sizes = (await Promise.all([...reading, read])).map(({ length }) => length);
  expect(sizes).toEqual(Array(5).fill(300 * KIB + 3));
});

test("small answers do not wait for large ones", async () => {
  const readWhole = createWholeBodies();
  const large = [inTwoPieces(300), inTwoPieces(300)];
  const reading = large.map((body) => readWhole(body, "a", never));
  await settled();
  const small = inTwoPieces(256 - 1);
  small.letGo();
  expect((await readWhole(small, "a", never)).length).toBe(255 * KIB + 3);
  for (const { letGo } of large) letGo();
  await Promise.all(reading);
});

test("an answer that is given up while it waits leaves its turn to the next", async () => {
  const readWhole = createWholeBodies();
  const bodies = [1, 2, 3, 4].map(() => inTwoPieces(300));
  const end = new AbortController();
  const reading = bodies.map((body, at) => readWhole(body, "a", at === 2 ? end.signal : never));
  await settled();
  end.abort(new Error("given up"));
  await expect(reading[2]).rejects.toThrow("given up");
  bodies[0]?.letGo();
  await reading[0];
  await settled();
  expect(bodies.map(({ goesOn }) => goesOn)).toEqual([true, true, false, true]);
  for (const { letGo } of bodies) letGo();
  await Promise.all([reading[1], reading[3]]);
});

test("an answer that fails gives its place back", async () => {
  const readWhole = createWholeBodies();
  for (let round = 0; round < 3; round++) {
    const broken = async function* () {
      yield Buffer.alloc(300 * KIB);
      throw new Error("broken");
    };
    await expect(readWhole(broken(), "a", never)).rejects.toThrow("broken");
  }
});
