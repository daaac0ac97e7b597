import { expect, test } from "bun:test";
import { join } from "node:path";
import { importsOf, ROOT, readSources } from "./source.ts";

/**
 * ARCHITECTURE.md draws the way of a message. Its arrows say how one file comes to call the other, and this test looks each
 * of them up in the code. It reads text: that the calls are made in this order is what the tests of messages and of the
 * runtime check.
 */
const SECTION = /\n## Life of a message\n(.*?)\n## /s;
/** `a["a.ts"] -- "f()" --> b["b.ts"]`; a node has its file where it comes first. */
const NODE = String.raw`(\w+)(?:\["([^"]+)"\])?`;
const ARROW = new RegExp(String.raw`^ *${NODE} (--|-\.|==) "([^"]+)" (?:-->|\.->|==>) ${NODE}$`);

type Arrow = { from: string; to: string; kind: string; label: string };

const section = SECTION.exec(await Bun.file(join(ROOT, "ARCHITECTURE.md")).text())?.[1] ?? "";
const picture = /```mermaid\nflowchart \w+\n(.*?)```/s.exec(section)?.[1] ?? "";

const paths = (await readSources()).map(({ path }) => path);
const texts = new Map(
  await Promise.all(paths.map(async (path) => [path, await Bun.file(join(ROOT, "src", path)).text()] as const)),
);

function readArrows(text: string): Arrow[] {
  const named = new Map<string, string>();
  const fileOf = (name = "", file?: string): string => {
    if (file !== undefined) named.set(name, file);
    return named.get(name) ?? `the unknown ${name}`;
  };
  return text
    .trimEnd()
    .split("\n")
    .map((line) => {
      const match = ARROW.exec(line);
      if (!match) throw new Error(`not an arrow: ${line}`);
      const [, a, aFile, kind = "", label = "", b, bFile] = match;
      return { from: fileOf(a, aFile), to: fileOf(b, bFile), kind, label };
    });
}

const textOf = (path: string): string => texts.get(path) ?? "";
const mentions = (path: string, name: string): boolean => new RegExp(String.raw`\b${name}\b`).test(textOf(path));
const calls = (path: string, name: string): boolean => new RegExp(String.raw`\b${name}\(`).test(textOf(path));
const imports = (path: string, to: string, { runs }: { runs: boolean }): boolean =>
  importsOf(path, textOf(path)).some((one) => one.to === to && (one.runs || !runs));

/** What is imported from a file, types without their `type`. */
function namesImported(path: string, from: string): string[] {
  const statements = [...textOf(path).matchAll(/^import (?:type )?\{([^}]*)\} from "([^"]+)";/gm)];
  return statements
    .filter(([, , to = ""]) => join(path, "..", to) === from)
    .flatMap(([, names = ""]) => names.split(",").map((name) => name.trim().replace(/^type /, "")));
}

/** Whether one of the types that `from` imports from `to` has this method. */
const importsTypeWith = (from: string, to: string, method: string): boolean =>
  namesImported(from, to).some((type) => {
    const members = new RegExp(String.raw`^export interface ${type}\b[^{]*\{\n(.*?)^\}`, "ms").exec(textOf(to))?.[1];
    return members !== undefined && new RegExp(String.raw`^  ${method}\(`, "m").test(members);
  });

/**
 * Whether a file that knows both ends (`to` itself, or one that imports the two) hands the function over; it may hand it to
 * the file that creates `from`, which passes it on.
 */
const isHandedOver = (from: string, to: string, name: string): boolean => {
  const runs = true;
  const creators = paths.filter((path) => imports(path, from, { runs }));
  return paths.some((path) =>
    path === to
      ? imports(path, from, { runs: false }) && mentions(path, name)
      : [from, ...creators].some((end) => imports(path, end, { runs })) &&
        imports(path, to, { runs }) &&
        mentions(path, name),
  );
};

/** True if the code has this arrow. */
function isInCode({ from, to, kind, label }: Arrow): boolean {
  if (!texts.has(from) || !texts.has(to)) return false;
  const name = label.replace("()", "");
  switch (kind) {
    case "--":
      return namesImported(from, to).includes(name) && imports(from, to, { runs: true }) && calls(from, name);
    case "-.":
      return calls(from, name) && (importsTypeWith(from, to, name) || isHandedOver(from, to, name));
    default:
      return (
        [from, to].every((path) => imports(path, "runtime/protocol.ts", { runs: false })) &&
        textOf(from).includes(`{ type: "${name}"`) &&
        textOf(to).includes(`case "${name}":`)
      );
  }
}

const arrows = readArrows(picture);
const ENDS = ["messages/events/hub.ts", "models/local.ts", "models/openai.ts", "runtime/prompt.ts", "tools/policy.ts"];
const FIRST = "messages/routes.ts";

test("every arrow of the picture is in the code", () => {
  expect(arrows.filter((arrow) => !isInCode(arrow))).toEqual([]);
});

test("the way leads from the route to the prompt, both engines, the tools and the open streams, without a gap", () => {
  const reached = new Set([FIRST]);
  for (const file of reached) for (const { from, to } of arrows) if (from === file) reached.add(to);
  expect(arrows.filter(({ from }) => !reached.has(from))).toEqual([]);
  const ends = [...reached].filter((file) => arrows.every(({ from }) => from !== file));
  expect(ends.sort()).toEqual(ENDS);
});

test("every file of the picture is explained below it, and every file named there exists", async () => {
  const below = section.slice(section.lastIndexOf("```"));
  const explained = Array.from(below.matchAll(/^(?:\d+\.|-) `src\/([^`]+)`/gm), ([, path = ""]) => path);
  expect(new Set(explained)).toEqual(new Set(arrows.flatMap(({ from, to }) => [from, to])));
  const named = Array.from(below.matchAll(/`src\/([^`]+\.ts)`/g), ([, path = ""]) => path);
  expect(named.filter((path) => !texts.has(path))).toEqual([]);
});

test.each([
  `a["messages/routes.ts"] -- "send()" --> b["messages/messages.ts"]`,
  `a["messages/routes.ts"] -. "post()" .-> b["messages/messages.ts"]`,
  `a["messages/routes.ts"] -. "run()" .-> b["runtime/host.ts"]`,
  `a["messages/messages.ts"] -. "queue()" .-> b["messages/runs/run.ts"]`,
  `a["runtime/worker.ts"] == "run" ==> b["runtime/host.ts"]`,
  `a["runtime/host.ts"] -. "publish()" .-> b["messages/events/hub.ts"]`,
])("an arrow that the code does not have is found: %s", (line) => {
  expect(readArrows(line).filter((arrow) => !isInCode(arrow))).toHaveLength(1);
});
