import { expect, test } from "bun:test";
import { join } from "node:path";
import { OUTGOING } from "../../src/limits/outgoing.ts";
import { importsOf, ROOT, readSources } from "./source.ts";

/** Modules that can open connections. `node:http` also has types and servers, but every import of it counts. */
const MODULES = new Set(
  ["net", "tls", "http", "https", "http2", "dgram", "dns", "dns/promises"].map((one) => `node:${one}`),
);
/** A value called `fetch`, and everything else that calls out; not a member, a field's name or a type. */
const CALLS =
  /(?<![.\w$])(?:fetch(?!\s*[?:,}]|\w)|http\(|createTransport\b|OTLPTraceExporter\b|WebSocket\b|EventSource\b)|\bBun\.(?:connect|udpSocket|dns|s3|sql|redis)\b/;
/** The parts of `node:net` about addresses open no connection. */
const ABOUT_ADDRESSES = /^import \{(?:\s*(?:isIP|isIPv4|isIPv6|BlockList|SocketAddress),?)+\s*\} from "node:net";$/gm;
/** The client of Roost's own API. */
const CLIENT = /^(\.\.\/)+clients\/typescript\//;
/** Files whose `fetch` handles incoming requests. */
const INCOMING = new Set(["http/listener.ts", "app/start.ts"]);
/** The console's code runs in a browser, and calls the server that it came from. */
const IN_BROWSER = /^console\/browser\//;

/** Code without comments and strings. */
const bare = (text: string): string =>
  text
    .replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "")
    .replaceAll(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, '""');

const callsOut = (path: string, text: string): boolean =>
  CALLS.test(bare(text)) ||
  importsOf(path, text.replaceAll(ABOUT_ADDRESSES, "")).some(
    ({ to, runs }) => runs && (MODULES.has(to) || CLIENT.test(to)),
  );

/** These files hold the bounds of their calls; the runtime bounds how many run at once. */
const MODEL_CALLS = ["models/openai/open-answer.ts", "models/openai/connect-probe.ts"];

const listed = [...Object.values(OUTGOING).flatMap(({ files }) => [...files]), ...MODEL_CALLS].sort();

test("every file that makes network calls is listed with the bounds of its calls, and no other", async () => {
  const calling: string[] = [];
  for (const { path } of await readSources()) {
    if (IN_BROWSER.test(path) || INCOMING.has(path)) continue;
    if (callsOut(path, await Bun.file(join(ROOT, "src", path)).text())) calling.push(path);
  }
  expect(calling.sort()).toEqual(listed);
});

test("every kind of call has a deadline, a maximum answer and a share of the connections", () => {
  for (const { deadlineMs, answerBytes, connections } of Object.values(OUTGOING)) {
    for (const bound of [deadlineMs, answerBytes, connections]) expect(bound).toBeGreaterThan(0);
    expect(deadlineMs).toBeLessThanOrEqual(30_000);
  }
});

test.each([
  `await fetch("https://example.org");`,
  `const open = (door.fetch ?? fetch)(url);`,
  `await globalThis["fetch"]; run(fetch);`,
  `const { createTransport } = await import("nodemailer");`,
  `const exporter = new OTLPTraceExporter({ url });`,
  `return http(url, { raw: true });`,
  `await Bun.connect({ hostname, port });`,
  `new WebSocket(url);`,
  `import { connect } from "node:net";`,
  `import { createRoost } from "../../clients/typescript/src/index.ts";`,
  `const tls = await import("node:tls");`,
])("the scan finds %s", (line) => {
  expect(callsOut("room/file.ts", `${line}\nconsole.log(connect);`)).toBe(true);
});

test.each([
  `const engine = open({ fetch: guarded });`,
  `interface Options { fetch?: Fetch }`,
  `await person.fetch("GET", path);`,
  `// fetch(url) is not called here\nconst words = "fetch(url)";`,
  `import type { Socket } from "node:net";`,
  `import { isIP, isIPv6 } from "node:net";\nconsole.log(isIP, isIPv6);`,
])("the scan ignores %s", (line) => {
  expect(callsOut("room/file.ts", line)).toBe(false);
});
