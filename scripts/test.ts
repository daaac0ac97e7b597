/**
 * Runs every test: types, lint, building the binary, then `bun test` on test/, or on the paths of `npm test -- <path>`.
 * The last line is `N passed, N failed`.
 */
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { CHECKS, passes } from "./check.ts";
import { findChromium, installChromium } from "./chromium.ts";

const ROOT = resolve(import.meta.dir, "..");
/** Ends what hangs, and nothing else: what is slow here is quick on a machine that does nothing else. */
const TEST_TIMEOUT_MS = 3_600_000;
/**
 * Processes that take the test files in turn. Much of the time they wait, for timers, chains and browsers: on two processors
 * all tests but the attacks took 579 s in two of these, and 505 s in four. Beside other work, four also get more of it.
 */
const LANES = 4;

/** Attacks look at the host's memory, and at thousands of connections at once: beside other tests they would see those. */
const ALONE = "test/attacks/";

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

async function main(words: string[]): Promise<number> {
  const started = performance.now();
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [name, command] of Object.entries({ ...CHECKS, build: ["scripts/build.ts"] })) {
    const passed = await passes(command);
    console.log(`(${passed ? "pass" : "fail"}) ${name}`);
    counts[passed ? "passed" : "failed"]++;
  }
  const browser = await provideBrowser();
  if (words.length > 0) add(counts, await runTests(words, browser, LANES));
  else {
    add(counts, await runTests(othersThan(ALONE), browser, LANES));
    add(counts, await runTests([ALONE], browser, 1));
  }

  if (browser === "") console.log("\nTHE BROWSER TESTS DID NOT RUN: no Chromium here, and none could be installed");
  console.log(`\n${((performance.now() - started) / 1000).toFixed(0)} s`);
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : "";
  console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`);
  return counts.failed === 0 ? 0 : 1;
}

/** The browser's path for the tests, "" where none can be had: test/support/browser.ts knows what follows from that. */
const provideBrowser = async (): Promise<string> => findChromium() ?? (await installChromium()) ?? "";

/** Every folder and file of tests but this one. */
const othersThan = (folder: string): string[] =>
  readdirSync(join(ROOT, "test"), { withFileTypes: true })
    .map((entry) => `test/${entry.name}${entry.isDirectory() ? "/" : ""}`)
    .filter((path) => path !== folder && (path.endsWith("/") || path.endsWith(".test.ts")));

async function runTests(words: string[], browser: string, lanes: number): Promise<Counts> {
  const options = lanes > 1 ? [`--parallel=${lanes}`, "--no-isolate"] : [];
  const command = [process.execPath, "test", ...options, `--timeout=${TEST_TIMEOUT_MS}`, ...words];
  const child = Bun.spawn(command, {
    cwd: ROOT,
    env: { ...process.env, ROOST_TEST_BROWSER: browser },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [, report] = await Promise.all([pass(child.stdout, process.stdout), pass(child.stderr, process.stderr)]);
  const counts = summary(report);
  const sound = (await child.exited) === 0;
  // An error outside of any test, or no summary at all: count it as a failure.
  if (!sound && counts.failed === 0) counts.failed = 1;
  return counts;
}

/** Passes a stream on and returns its last part, long enough for the summary of `bun test`. */
async function pass(from: ReadableStream<Uint8Array>, to: NodeJS.WriteStream): Promise<string> {
  const decoder = new TextDecoder();
  let tail = "";
  for await (const bytes of from) {
    to.write(bytes);
    tail = (tail + decoder.decode(bytes, { stream: true })).slice(-4000);
  }
  return tail;
}

/** Reads the final lines ` 12 pass` … of the output. (The JUnit report leaves out files that could not be loaded.) */
function summary(report: string): Counts {
  const count = (word: string) =>
    Number(
      report
        .match(new RegExp(`^ (\\d+) ${word}$`, "gm"))
        ?.at(-1)
        ?.trim()
        .split(" ")[0] ?? 0,
    );
  return { passed: count("pass"), failed: count("fail"), skipped: count("skip") + count("todo") };
}

function add(sum: Counts, more: Counts): void {
  sum.passed += more.passed;
  sum.failed += more.failed;
  sum.skipped += more.skipped;
}

process.exit(await main(process.argv.slice(2)));
