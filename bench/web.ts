import { createEgress } from "../src/egress/egress.ts";
import { createEgressPolicy } from "../src/egress/policy.ts";
import { createPageReader } from "../src/tools/page/page-reader.ts";
import { median, type Row } from "./figure.ts";

const REQUESTS = 500;
const PAGES = 20;
/** Less than a request over the shortest network takes. */
const OVERHEAD_MS = 2;
const signal = new AbortController().signal;

/** What agents' requests cost beside plain ones, and whether a page that is slow to read holds anybody up. */
export async function benchWeb(): Promise<Row[]> {
  const child = Bun.spawn([process.execPath, "-e", SERVER], { stdio: ["ignore", "pipe", "inherit"] });
  const { value } = await child.stdout.getReader().read();
  const url = new TextDecoder().decode(value).trim();
  const egress = createEgress({ policy: createEgressPolicy([new URL(url).host]) });
  const guarded = (path: string) =>
    egress.send({ url: url + path, accountId: "acc_bench", instanceId: "inst_bench", signal });
  const plain = async (path: string) =>
    (await fetch(url + path, { keepalive: false, headers: { Connection: "close" } })).bytes();
  const [small, large] = [await compare("/small", guarded, plain), await compare("/large", guarded, plain)];
  child.kill();

  const pages = createPageReader();
  const read = (html: string) => pages.read("acc_bench", html, "https://example.org/", signal);
  await read(ARTICLE);
  const articleMs = await medianMs(PAGES, () => read(ARTICLE));
  const slow = await longestTurnMs(() => read(SLOW));
  const idle = await longestTurnMs(() => Bun.sleep(5_000));
  pages.close();
  return [
    row("an agent's request, new connection, median", small),
    row("the same, with 1 MiB, compressed", large),
    {
      figure: "an article of 100 KB as Markdown, median",
      value: articleMs,
      unit: "ms",
      goal: "≤ 200 ms",
      met: articleMs <= 200,
    },
    {
      figure: "longest turn of the host while a page takes five seconds to read",
      value: slow,
      unit: "ms",
      baseline: { what: "while nothing happens", value: idle },
      goal: "≤ 50 ms more",
      met: slow <= idle + 50,
    },
  ];
}

interface Comparison {
  guardedMs: number;
  plainMs: number;
}

/** Both in turns, so that what else the machine does counts for both. */
async function compare(
  path: string,
  guarded: (path: string) => Promise<unknown>,
  plain: (path: string) => Promise<unknown>,
): Promise<Comparison> {
  const [guardedMs, plainMs]: [number[], number[]] = [[], []];
  for (let round = 0; round < REQUESTS / 50; round++) {
    guardedMs.push(await medianMs(50, () => guarded(path)));
    plainMs.push(await medianMs(50, () => plain(path)));
  }
  return { guardedMs: median(guardedMs), plainMs: median(plainMs) };
}

const row = (figure: string, { guardedMs, plainMs }: Comparison): Row => ({
  figure,
  value: guardedMs,
  unit: "ms",
  baseline: { what: "fetch, new connection", value: plainMs },
  goal: `≤ ${OVERHEAD_MS} ms more than fetch`,
  met: guardedMs <= plainMs + OVERHEAD_MS,
});

async function medianMs(times: number, work: () => Promise<unknown>): Promise<number> {
  const taken: number[] = [];
  for (let at = 0; at < times; at++) {
    const began = performance.now();
    await work();
    taken.push(performance.now() - began);
  }
  return median(taken);
}

async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let [longest, last] = [0, performance.now()];
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1);
  await work();
  clearInterval(timer);
  return longest;
}

const PARAGRAPH =
  "<p>The heron stood in the <a href='/reeds'>reeds</a>, and waited for a fish to come by, as it did every day.</p>";
const ARTICLE = `<html><head><title>Herons</title></head><body><nav><a href="/">Home</a></nav><article><h1>Herons</h1>${PARAGRAPH.repeat(900)}</article></body></html>`;
const SLOW = "<div>".repeat(30_000);
const SERVER = `
const large = Bun.gzipSync(Buffer.from(Array.from({ length: 1 << 20 }, (_, at) => 32 + ((at * at) % 91))));
const encoded = { "Content-Encoding": "gzip", "Content-Type": "text/plain" };
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: (request) => (request.url.endsWith("/large") ? new Response(large, { headers: encoded }) : new Response("small")),
});
console.log(server.url.origin);`;
