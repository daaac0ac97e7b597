import { expect, test } from "bun:test";
import fc from "fast-check";
import { readBody } from "../../src/egress/body.ts";

const HEAD = { status: 200, headers: [["transfer-encoding", "chunked"] as [string, string]] };

/** Reads what a server sent in these pieces. */
async function bodyOf(pieces: Buffer[]): Promise<{ body: string; pieces: number }> {
  const left = pieces.filter(({ length }) => length > 0);
  const reader = {
    line: () => Promise.reject(new Error("no head")),
    some: async () => left.shift() ?? Buffer.alloc(0),
  };
  const read: Buffer[] = [];
  for await (const bytes of readBody(reader, "GET", HEAD, 1024 * 1024, new AbortController().signal)) read.push(bytes);
  return { body: Buffer.concat(read).toString("latin1"), pieces: read.length };
}

const chunk = fc
  .record({
    text: fc.string({ minLength: 1, maxLength: 40, unit: fc.constantFrom("a", "\r", "\n", "0") }),
    extension: fc.constantFrom("", " ", ";a=b"),
    lineEnd: fc.constantFrom("\r\n", "\n"),
  })
  .map(({ text, extension, lineEnd }) => ({
    text,
    wire: `${text.length.toString(16)}${extension}${lineEnd}${text}${lineEnd}`,
  }));

test("chunks are read the same wherever the pieces begin and end in which they arrive", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(chunk, { maxLength: 20 }),
      fc.array(fc.nat(), { maxLength: 20 }),
      async (chunks, cuts) => {
        const wire = Buffer.from(`${chunks.map((each) => each.wire).join("")}0\r\nTrailer: x\r\n\r\n`);
        const places = [0, ...cuts.map((cut) => cut % wire.length).sort((a, b) => a - b), wire.length];
        const pieces = places.slice(1).map((end, at) => Buffer.from(wire.subarray(places[at], end)));
        expect((await bodyOf(pieces)).body).toBe(chunks.map(({ text }) => text).join(""));
      },
    ),
  );
});

test("an answer whose last chunk never comes is cut off, wherever it ends", async () => {
  const wire = Buffer.from("3\r\nabc\r\n2;x=y\r\nde\r\n");
  for (let end = 0; end <= wire.length; end++) {
    await expect(bodyOf([Buffer.from(wire.subarray(0, end))])).rejects.toThrow(
      "closed the connection before its answer's end",
    );
  }
});

test("small chunks that arrive together are passed on together", async () => {
  const wire = Buffer.from(`${"40\r\n".concat("x".repeat(64), "\r\n").repeat(500)}0\r\n\r\n`);
  expect(await bodyOf([wire])).toEqual({ body: "x".repeat(32_000), pieces: 1 });
});
