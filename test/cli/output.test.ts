import { expect, test } from "bun:test";
import { InvalidArgumentError } from "commander";
import { durationMs, fileOfPath, heartbeat, interval, profileName, serverUrl } from "../../src/cli/arguments.ts";
import { layOut, printable, shortened, shortMoney } from "../../src/cli/output.ts";

test("untrusted text cannot move the cursor, hide text or change its direction", () => {
  const evil = [0x1b, 0x9b, 0x07, 0x08, 0x0d, 0x7f, 0x202e, 0x2066].map((code) => String.fromCodePoint(code)).join("");
  expect(printable(`a${evil}b\tc\nd é 日本 👩‍💻`)).toBe("ab\tc\nd é 日本 👩‍💻");
});

test("money is shown with at least two decimals, and all significant ones", () => {
  expect(["10.000000", "0.030000", "0.030500", "1.003217", "-0.500000"].map(shortMoney)).toEqual([
    "10.00",
    "0.03",
    "0.0305",
    "1.003217",
    "-0.50",
  ]);
  expect(shortMoney(100_000_000n)).toBe("100.00");
});

test("durations are a number with s, m, h or d", () => {
  expect(["30s", "90m", "12h", "7d"].map(durationMs)).toEqual([30_000, 5_400_000, 43_200_000, 604_800_000]);
  for (const wrong of ["", "7", "d", "-1d", "1.5h", "7 d", "7w", "0s", "99999d"]) {
    expect(() => durationMs(wrong)).toThrow(InvalidArgumentError);
  }
});

test("an interval that the API would refuse is refused in the words of the command line", () => {
  expect([interval("1m")("60s"), interval("1m")("365d")]).toEqual([60_000, 31_536_000_000]);
  for (const wrong of ["59s", "366d"]) expect(() => interval("1m")(wrong)).toThrow("Expected a time from 1m to 365d.");
  expect([heartbeat("5m"), heartbeat("off")]).toEqual([300_000, "off"]);
  expect(() => heartbeat("1m")).toThrow("Expected a time from 5m to 365d.");
});

test("a server's address is accepted with or without /v1 and slashes", () => {
  for (const url of ["http://127.0.0.1:7373", "http://127.0.0.1:7373/", "http://127.0.0.1:7373/v1/"]) {
    expect(serverUrl(url)).toBe("http://127.0.0.1:7373");
  }
  expect(serverUrl("https://example.org/roost/v1")).toBe("https://example.org/roost");
  for (const wrong of ["", "example.org", "ftp://example.org", "http://user:pass@example.org"]) {
    expect(() => serverUrl(wrong)).toThrow(InvalidArgumentError);
  }
});

test("files are collected by name; a path may hold an equals sign", () => {
  expect(fileOfPath("USER.md=a=b", fileOfPath("SOUL.md=./soul.md"))).toEqual({
    "SOUL.md": "./soul.md",
    "USER.md": "a=b",
  });
  expect(() => fileOfPath("SOUL.md")).toThrow(InvalidArgumentError);
});

test("a profile's name is one word that does not look like an option", () => {
  for (const name of ["work", "127.0.0.1:7373", "ada+x@example.org@roost.example.org/roost", "büro"]) {
    expect(profileName(name)).toBe(name);
  }
  for (const wrong of ["", "two words", "-x", "__proto__", "a\u001b"]) {
    expect(() => profileName(wrong)).toThrow(InvalidArgumentError);
  }
});

const HEADS = ["SLUG", "NAME", "FILES", "ID"];
const ID = `agt_${"0".repeat(32)}`;
const ROWS = [
  ["ada", "Ada", "SOUL.md USER.md", ID],
  ["a-very-long-slug-of-an-agent", "日本語の名前がとても長いエージェント", "SOUL.md", ID],
];

test("a table has its full width where there is room", () => {
  expect(layOut(HEADS, ROWS, Number.POSITIVE_INFINITY)).toEqual([
    "SLUG                          NAME                                  FILES            ID",
    `ada                           Ada                                   SOUL.md USER.md  ${ID}`,
    `a-very-long-slug-of-an-agent  日本語の名前がとても長いエージェント  SOUL.md          ${ID}`,
  ]);
});

test("a table leaves out columns, then shortens cells, but never an id", () => {
  const narrowing = { leaveOut: ["FILES"], shorten: ["SLUG", "NAME"] };
  expect(layOut(HEADS, ROWS.slice(0, 1), 80, narrowing)[1]).toBe(`ada   Ada   SOUL.md USER.md  ${ID}`);
  expect(layOut(HEADS, ROWS, 80, narrowing)).toEqual([
    "SLUG                  NAME                  ID",
    `ada                   Ada                   ${ID}`,
    `a-very-long-slug-of…  日本語の名前がとて…   ${ID}`,
  ]);
  for (const columns of [52, 60, 79, 80, 100]) {
    for (const line of layOut(HEADS, ROWS, columns, narrowing)) {
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
    }
  }
  expect(layOut(HEADS, ROWS, 20, narrowing)[2]).toEndWith(ID);
});

test("shortened text ends with an ellipsis, and no character is cut in two", () => {
  expect(shortened("short", 5)).toBe("short");
  expect(shortened("longer", 5)).toBe("long…");
  expect(shortened("日本語", 4)).toBe("日…");
  expect(shortened("👩‍💻👩‍💻👩‍💻", 5)).toBe("👩‍💻👩‍💻…");
});
