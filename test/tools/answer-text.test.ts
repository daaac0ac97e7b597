import { expect, test } from "bun:test";
import { describeBinary, textOf } from "../../src/tools/answer-text.ts";

const read = (type: string | null, body: Uint8Array | string) =>
  textOf({ status: 200, headers: type === null ? [] : [["content-type", type]], body: Buffer.from(body as string) });
const bytes = (...list: number[]) => new Uint8Array(list);

test.each([
  ["text/plain; charset=utf-8", "é☃", "é☃"],
  ["text/plain", "é☃", "é☃"],
  ["text/plain", bytes(0x63, 0x61, 0x66, 0xe9), "café"],
  ["text/plain; charset=iso-8859-1", bytes(0xe9), "é"],
  ['text/plain; charset="shift_jis"', bytes(0x82, 0xa0), "あ"],
  ["text/plain; charset=GBK", bytes(0xc4, 0xe3), "你"],
  ["text/plain; charset=no-such-thing", bytes(0xe9), "é"],
  ["text/plain; charset=utf-8", bytes(0xff, 0xfe, 0x61, 0x00), "a"],
  ["text/plain", bytes(0xef, 0xbb, 0xbf, 0x61), "a"],
  ["text/html", '<meta charset="windows-1251">\xcf', '<meta charset="windows-1251">П'],
  ["text/html; charset=iso-8859-1", '<meta charset="windows-1251">\xcf', '<meta charset="windows-1251">Ï'],
  ["text/html", '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">\xf1', /Я$/],
  ["application/json", '{"a":1}', '{"a":1}'],
  ["application/problem+json", "{}", "{}"],
  ["application/atom+xml", "<feed/>", "<feed/>"],
  [null, "plain", "plain"],
] as const)("%s is read by the characters that it declares: %p", (type, body, text) => {
  const found = read(
    type,
    typeof body === "string" && type?.startsWith("text/html") ? Buffer.from(body, "latin1") : body,
  );
  expect(found.kind).not.toBe("binary");
  if (found.kind !== "binary") expect(found.text).toMatch(text);
});

test("pages are told from other text, also without a declared type", () => {
  expect(read("text/html; charset=utf-8", "").kind).toBe("html");
  expect(read("application/xhtml+xml", "").kind).toBe("html");
  expect(read(null, "\n<!DOCTYPE html><p>a").kind).toBe("html");
  expect(read("text/plain", "<html>").kind).toBe("text");
});

test("what is not text is described, never shown", () => {
  for (const type of [
    "image/png",
    "application/pdf",
    "application/octet-stream",
    "application/zip",
    "video/mp4",
    "font/woff2",
  ]) {
    expect(read(type, "bytes")).toEqual({ kind: "binary", type });
  }
  expect(read(null, bytes(0x89, 0x50, 0)).kind).toBe("binary");
  expect(describeBinary("image/png", Buffer.alloc(12_345))).toBe("[12345 bytes of image/png: not text, so not shown]");
});
