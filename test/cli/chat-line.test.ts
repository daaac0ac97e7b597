/** How keys and typed text are read, whatever pieces they come in. */
import { expect, test } from "bun:test";
import { createKeyReader, type KeyName } from "../../src/cli/user/chat-keys.ts";
import { createChatLine } from "../../src/cli/user/chat-line.ts";
import { layOutTyped } from "../../src/cli/user/chat-screen.ts";

const PASTE = "\u001b[200~one\r\ntwo \u001b[31mred\u001b[D\u0003\u001b[201~";

test("keys are the same wherever their bytes are cut", () => {
  const bytes = Buffer.from(`né日👍\u001b[D\u001bOC\u001b[1;5D\u001bb${PASTE}\u001b[3~\u001b[[Ax\r`);
  const whole = createKeyReader().read(bytes);
  const typed = (name: KeyName) => ({ kind: "named" as const, name });
  expect(whole).toEqual([
    { kind: "text", text: "né日👍" },
    typed("left"),
    typed("right"),
    typed("word left"),
    typed("word left"),
    { kind: "paste", text: "one\r\ntwo \u001b[31mred\u001b[D\u0003" },
    typed("delete"),
    { kind: "text", text: "x" },
    typed("enter"),
  ]);
  const isText = ({ kind }: { kind: string }) => kind === "text";
  for (let at = 1; at < bytes.length; at++) {
    const reader = createKeyReader();
    const keys = [...reader.read(bytes.subarray(0, at)), ...reader.read(bytes.subarray(at))];
    expect(keys.filter((key) => !isText(key))).toEqual(whole.filter((key) => !isText(key)));
    expect(keys.map((key) => ("text" in key ? key.text : "·")).join("")).toBe(
      whole.map((key) => ("text" in key ? key.text : "·")).join(""),
    );
  }
});

test("no letter is lost after Escape", () => {
  expect(createKeyReader().read(Buffer.from("\u001bh\u001b\u001b[D"))).toEqual([
    { kind: "text", text: "h" },
    { kind: "named", name: "left" },
  ]);
});

test("Escape alone, and a paste whose end was lost, take no key that comes later", () => {
  const reader = createKeyReader();
  expect([reader.read(Buffer.from("\u001b")), reader.isInKey()]).toEqual([[], true]);
  reader.endKey();
  expect(reader.read(Buffer.from("[x"))).toEqual([{ kind: "text", text: "[x" }]);
  const interrupt = { kind: "named" as const, name: "interrupt" as const };
  expect(reader.read(Buffer.from("\u001b\u0003"))).toEqual([interrupt]);
  expect(reader.read(Buffer.from("\u001b[200~hello"))).toEqual([]);
  expect(reader.read(Buffer.from("\u0003"))).toEqual([interrupt]);
  expect(reader.read(Buffer.from("x"))).toEqual([{ kind: "text", text: "x" }]);
});

test("what is pasted becomes text without control characters", () => {
  const line = createChatLine(() => []);
  line.insert("one\r\ntwo \u001b[31mred\rend\u0007\tof it");
  expect(line.text).toBe("one\ntwo [31mred\nend\tof it");
});

const lineWith = (text: string, ...names: KeyName[]) => {
  const line = createChatLine(() => ["newest", "older"]);
  line.insert(text);
  for (const name of names) line.press(name);
  return line;
};

test("the cursor goes by whole characters, words and lines", () => {
  expect(lineWith("a👨‍👩‍👧b", "left", "left").cursor).toBe(1);
  expect(lineWith("a👨‍👩‍👧b", "left", "backspace").text).toBe("ab");
  expect(lineWith("one two-three", "word left", "word left").cursor).toBe(4);
  expect(lineWith("one two", "home", "word right", "delete word after").text).toBe("one");
  expect(lineWith("one\ntwo", "home").cursor).toBe(4);
  expect(lineWith("\ntwo", "home", "left", "home", "end").cursor).toBe(0);
  expect(lineWith("three\nsix\nseven", "up", "up").cursor).toBe(3);
  expect(lineWith("three\nsix", "up", "down").cursor).toBe(9);
});

test("what was deleted can be put back", () => {
  expect(lineWith("one two", "delete word before", "home", "put back").text).toBe("twoone ");
  expect(lineWith("one\ntwo", "delete all before").text).toBe("");
  expect(lineWith("one two", "word left", "delete all after").text).toBe("one ");
});

test("Up brings what was typed before, and Down what was not sent yet", () => {
  expect(lineWith("draft", "up").text).toBe("newest");
  expect(lineWith("draft", "up", "up", "up").text).toBe("older");
  expect(lineWith("draft", "up", "up", "down", "down", "down").text).toBe("draft");
});

test("a text is laid out in rows that fit, with wide characters whole", () => {
  const text = "日本語 ab\n\tc";
  expect(layOutTyped("> ", text, text.length, 7)).toEqual({
    rows: [
      ["> ", "日", "本"],
      ["語", " ", "a", "b"],
      ["    ", "c"],
    ],
    row: 2,
    column: 5,
  });
  expect(layOutTyped("> ", text, 2, 7)).toMatchObject({ row: 1, column: 0 });
  expect(layOutTyped("> ", text, 6, 7)).toMatchObject({ row: 1, column: 5 });
});
