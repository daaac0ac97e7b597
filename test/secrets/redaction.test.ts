import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createFairTurns } from "../../src/limits/fair-turns.ts";
import { createSlices, createSliceTurns } from "../../src/limits/slices.ts";
import { createRedactor, createTree, redact, redactBy } from "../../src/secrets/redaction.ts";

const VALUE = 's3"cr/et<v>a+l=ue é_x';
const turns = createSliceTurns();
const redactFor = (text: string, secrets: ReadonlyMap<string, string>) =>
  redact(text, secrets, createSlices(turns, "owner"));
const hide = (text: string, value = VALUE) => redactFor(text, new Map([["TOKEN", value]]));
const bytesOf = (value: string) => [...Buffer.from(value)].map((byte) => byte.toString(16).padStart(2, "0"));
const asciiJson = (value: string) =>
  JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** How servers write what they were sent. */
const FORMS: Record<string, (value: string) => string> = {
  "as it is": (value) => value,
  base64: (value) => Buffer.from(value).toString("base64"),
  base64url: (value) => Buffer.from(value).toString("base64url"),
  hexadecimal: (value) => bytesOf(value).join(""),
  "hexadecimal in capitals": (value) => bytesOf(value).join("").toUpperCase(),
  "percent-encoded": encodeURIComponent,
  "percent-encoded in small letters": (value) => encodeURIComponent(value).replace(/%../g, (one) => one.toLowerCase()),
  "percent-encoded as a URL": encodeURI,
  "percent-encoded, every byte": (value) =>
    bytesOf(value)
      .map((byte) => `%${byte}`)
      .join(""),
  "a form": (value) => new URLSearchParams([["q", value]]).toString().slice(2),
  JSON: (value) => JSON.stringify(value).slice(1, -1),
  "JSON in ASCII": (value) => asciiJson(value).slice(1, -1),
  "JSON with escaped slashes": (value) => JSON.stringify(value).slice(1, -1).replaceAll("/", "\\/"),
  "JSON in JSON": (value) => JSON.stringify(JSON.stringify(value)).slice(1, -1),
  HTML: Bun.escapeHTML,
  "HTML by numbers": (value) => [...value].map((one) => `&#${one.codePointAt(0)};`).join(""),
  "HTML by hexadecimal numbers": (value) => [...value].map((one) => `&#x${one.codePointAt(0)?.toString(16)};`).join(""),
  "HTML by numbers with zeros before them": (value) =>
    [...value].map((one) => `&#${String(one.codePointAt(0)).padStart(9, "0")};`).join(""),
  "HTML by hexadecimal numbers with zeros before them": (value) =>
    [...value].map((one) => `&#X${one.codePointAt(0)?.toString(16).toUpperCase().padStart(40, "0")};`).join(""),
  "JSON in HTML": (value) => Bun.escapeHTML(JSON.stringify(value)),
  "a URL in JSON": (value) => JSON.stringify(`https://a.example/?q=${encodeURIComponent(value)}`),
  "a URL in JSON in HTML": (value) => Bun.escapeHTML(JSON.stringify(`?q=${encodeURIComponent(value)}`)),
  Markdown: (value) => value.replace(/[_<>+]/g, "\\$&"),
};

describe.each(Object.entries(FORMS))("a value sent back as %s", (_, form) => {
  test("is replaced by its name, and what is around it stays", async () => {
    const found = await hide(`before ${form(VALUE)} after`);
    expect(found).toMatch(/^before .*\[secret TOKEN\].* after$/s);
    for (const other of Object.values(FORMS)) expect(found).not.toContain(other(VALUE));
  });
});

test.each(["", "u", "us", "use", "user:"])(
  "a value is found in base64 after %p, as in Basic credentials",
  async (before) => {
    for (const after of ["", ":", ":x", "xyz"]) {
      for (const encoding of ["base64", "base64url"] as const) {
        const found = await hide(`Basic ${Buffer.from(before + VALUE + after).toString(encoding)}!`);
        expect(found).toContain("[secret TOKEN]");
        const left = found.replace("[secret TOKEN]", " ").replace("Basic ", "").split(" ");
        // What is left on both sides decodes to what was around the value, and less than a byte of it.
        expect(left.map((part) => part.length).reduce((a, b) => a + b)).toBeLessThanOrEqual(
          2 * 4 + before.length * 2 + after.length * 2,
        );
      }
    }
  },
);

const inLines = (text: string, columns: number, lineBreak: string): string =>
  (text.match(new RegExp(`.{1,${columns}}`, "g")) ?? []).join(lineBreak);

/** How lines are written, and how they are read again. */
const CARRIERS: Record<string, [write: (lines: string) => string, read: (written: string) => string]> = {
  "as they are": [(lines) => lines, (written) => written],
  "in JSON": [(content) => JSON.stringify({ content }), (written) => JSON.parse(written).content],
  "in JSON in JSON": [(lines) => JSON.stringify(JSON.stringify(lines)), (written) => JSON.parse(JSON.parse(written))],
  "in a form": [(lines) => encodeURIComponent(lines), (written) => decodeURIComponent(written)],
};

describe.each(Object.entries(CARRIERS))("lines of base64 or hexadecimal %s", (_, [write, read]) => {
  test.each([60, 64, 76])("hide no value where they have %i columns, wherever it begins", async (columns) => {
    for (const encoding of ["base64", "base64url", "hex"] as const) {
      for (let before = 0; before < columns; before++) {
        const encoded = Buffer.from(`${"x".repeat(before)}${VALUE}${"y".repeat(40)}`).toString(encoding);
        const expected = await hide(encoded);
        for (const lineBreak of ["\n", "\r\n", "\n  "]) {
          const found = read(await hide(write(inLines(encoded, columns, lineBreak))));
          expect(found.replaceAll(lineBreak, "")).toBe(expected);
        }
      }
    }
  });
});

test("a value of thousands of characters is replaced to its end in lines of base64", async () => {
  const lines = inLines(Buffer.from(LONG).toString("base64"), 76, "\n");
  expect(await hide(`begin\n${lines}\nend`, LONG)).toMatch(/^begin\n\[secret TOKEN\].{0,3}\nend$/);
});

test("words on two lines are not taken for one", async () => {
  expect(await hide("Let them\nin, and all others.", "themin")).toBe("Let them\nin, and all others.");
});

test("all secrets are looked for, the longest first, and overlapping ones are one gap", async () => {
  const secrets = new Map([
    ["SHORT", "abcdef"],
    ["LONG", "abcdefghij"],
    ["OTHER", "hij-klm"],
  ]);
  expect(await redactFor("abcdef abcdefghij hij-klm", secrets)).toBe("[secret SHORT] [secret LONG] [secret OTHER]");
  expect(await redactFor("abcdefghij-klm.", secrets)).toBe("[secret LONG]-klm.");
});

test("without secrets, or with ones too short to be told from other text, nothing changes", async () => {
  expect(await redactFor("text & text", new Map())).toBe("text & text");
  expect(await redactFor("abc %61bc", new Map([["TINY", "abc"]]))).toBe("abc %61bc");
});

test("text without the value comes back as it was, escapes included", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary", maxLength: 300 }), async (text) => {
      const whole = text.toWellFormed();
      fc.pre(!whole.includes("Zq9!"));
      expect(await hide(whole, "Zq9!Zq9!-never-there")).toBe(whole);
    }),
    { numRuns: 300 },
  );
});

test("any value is found in any form, anywhere in any text", async () => {
  const words = fc.string({
    unit: fc.constantFrom("a", "b", "%", "\\", "&", '"', "é", "☃", " ", "4", "1"),
    maxLength: 40,
  });
  const value = fc
    .string({ unit: "grapheme", minLength: 6, maxLength: 40 })
    .filter((one) => Buffer.byteLength(one.trim()) >= 6);
  // Base64 is tested above: it takes a character on each side along.
  const forms = fc.constantFrom(...Object.entries(FORMS).filter(([name]) => !/base64|Markdown|as a URL/.test(name)));
  await fc.assert(
    fc.asyncProperty(words, value, forms, words, async (before, given, [, form], after) => {
      const one = given.toWellFormed();
      // An escape that ends in the value's first character would make another text of both.
      const found = await hide(`${before}. ${form(one)} .${after}`, one);
      expect(found).toContain("[secret TOKEN]");
      expect(found).not.toContain(form(one));
    }),
    { numRuns: 500 },
  );
});

test("among many secrets with common beginnings, the longest is found, and none that is only begun", async () => {
  const secrets = new Map(
    ["token", "token-1", "token-12", "token-2", "tok!", "other"].map((value) => [`OF_${value}`, value]),
  );
  const find = (text: string) => redactFor(text, secrets);
  expect(await find("token-12 token-1 token-2 token- tok! tok othe other")).toBe(
    "[secret OF_token-12] [secret OF_token-1] [secret OF_token-2] [secret OF_token]- [secret OF_tok!] tok othe [secret OF_other]",
  );
});

test("a long value is found whole, and also where its end was cut off", async () => {
  const value = Array.from({ length: 9_000 }, (_, at) => String.fromCharCode(33 + ((at * at + at) % 89))).join("");
  expect(await hide(`a ${value} b`, value)).toBe("a [secret TOKEN] b");
  expect(await hide(`a ${value.slice(0, 5_000)}… b`, value)).toBe("a [secret TOKEN]… b");
  expect(await hide(`a ${value.slice(0, 500)}… b`, value)).toBe(`a ${value.slice(0, 500)}… b`);
});

/** Turns that are taken by hand, and a clock by which every part of the work takes a quarter of a millisecond. */
function openTurns() {
  let ms = 0;
  const next: (() => void)[] = [];
  const now = () => {
    ms += 0.25;
    return ms;
  };
  const turns = createFairTurns({ maxMs: 1, now, nextTurn: (then) => void next.push(then) });
  return {
    slicesOf: (owner: string) => createSlices(turns, owner, now),
    /** Returns how many turns it took. */
    async until(isDone: () => boolean): Promise<number> {
      for (let taken = 0; ; taken++) {
        await new Promise(setImmediate);
        if (isDone()) return taken;
        for (const then of next.splice(0)) then();
      }
    },
  };
}

test("an account's text takes as many turns beside many of another's as it takes alone", async () => {
  const secrets = new Map([["TOKEN", VALUE]]);
  const text = "a%41 text ".repeat(2_000);
  const done: string[] = [];
  const search = async ({ slicesOf }: ReturnType<typeof openTurns>, owner: string) => {
    await redact(text, secrets, slicesOf(owner));
    done.push(owner);
  };
  const alone = openTurns();
  void search(alone, "one");
  const turnsAlone = await alone.until(() => done.length === 1);
  expect(turnsAlone).toBeGreaterThan(10);

  const beside = openTurns();
  for (let number = 0; number < 12; number++) void search(beside, "many");
  void search(beside, "one");
  expect(await beside.until(() => done.length === 2)).toBe(turnsAlone);
  expect(done).toEqual(["one", "one"]);
  expect(await beside.until(() => done.length === 14)).toBeGreaterThan(10 * turnsAlone);
});

test("many short texts of one redactor take as many turns as their length needs", async () => {
  const { slicesOf, until } = openTurns();
  const redactOne = await createRedactor(new Map([["TOKEN", VALUE]]), slicesOf("owner"));
  let done = 0;
  void (async () => {
    for (; done < 100; done++) await redactOne?.("short");
  })();
  // Each is searched, and then searched for escapes.
  expect(await until(() => done === 100)).toBe(50);
});

const LONG = `${"0123456789abcdef~?".repeat(80)} a long one é ${"fedcba9876543210~?".repeat(80)}`;

test.each(Object.entries(FORMS))(
  "a value of thousands of characters is replaced to its end when sent back as %s",
  async (_, form) => {
    const found = await hide(form(LONG), LONG);
    expect(found).toContain("[secret TOKEN]");
    // A URL, or a quotation mark that is escaped, is around some of them.
    expect(found.length).toBeLessThan(60);
  },
);

test("of a longer text, no part of a value is left where it is cut, in any form", async () => {
  const inSlices = createSlices(turns, "owner");
  for (const value of [VALUE, LONG]) {
    const tree = await createTree(new Map([["TOKEN", value]]), inSlices);
    for (const form of Object.values(FORMS)) {
      const sent = form(value);
      for (const before of ["", "Bearer "]) {
        const text = `${before}${sent}${" and more".repeat(20_000)}`;
        const whole = await redactBy(tree, text, inSlices);
        const start = whole.slice(0, whole.indexOf("[secret TOKEN]"));
        for (const most of [4, 12, Math.floor(sent.length / 2), sent.length - 1].map((part) => before.length + part)) {
          const shown = await redactBy(tree, text, inSlices, most);
          expect([`${start}[secret TOKEN]`, start.slice(0, most)]).toContain(shown.replace(/(?<=\]).*/s, ""));
        }
      }
    }
  }
  const tree = await createTree(new Map([["TOKEN", VALUE]]), inSlices);
  expect(await redactBy(tree, "plain text", inSlices, 5)).toBe("plain");
});
