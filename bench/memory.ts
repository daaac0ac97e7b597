import { cpuMs, median, percentile, type Row } from "./figure.ts";
import { type BenchHost, startHost } from "./host.ts";

const AGENTS = 20;
/** Together 50,000 passages in 200 MB. */
const CHUNKS_EACH = 2_500;
const BYTES_EACH = 10_000_000;
const FILE_BYTES = 240_000;
/** Texts of a file that the memory has; the rest of a workspace's bytes is no text. */
const FILES_EACH = 14;
const SEARCHES = 200;
const CHAT_MESSAGES = 4;

/** How fast memories are filled while an agent is being answered, and how long a search of one takes then and later. */
export async function benchMemory(): Promise<Row[]> {
  await using host = await startHost({ ROOST_MODEL: "local:smollm2-135m-instruct" });
  const { instanceId } = await host.ask("POST", "/v1/instances", { name: "bench" });
  const path = `/v1/instances/${instanceId}/agents`;
  const agents: string[] = [];
  for (let number = 0; number < AGENTS; number++) {
    agents.push((await host.ask("POST", path, { name: `a${number}`, slug: `a${number}` })).agentId ?? "");
  }
  const [talker = ""] = agents;
  /** Tokens a second of one answer, from the message to its end. */
  const chat = async () => {
    let tokens = 0;
    const ms = await timeOf(async () => {
      const reply = await host.ask("POST", `${path}/${talker}/messages`, { message: "Tell me about bread." });
      tokens = (reply.usage as unknown as { completionTokens: number }).completionTokens;
    });
    return (1_000 * tokens) / ms;
  };
  await chat();
  const chatAlone = await repeat(CHAT_MESSAGES, chat);

  for (const agent of agents) await fill(host, `${path}/${agent}`);
  const beganMs = performance.now();
  const chatting: number[] = [];
  let isDone = false;
  const talk = async () => {
    while (!isDone) chatting.push(await chat());
  };
  const firstTalk = talk();
  console.error("… memory: filled");
  const words: number[] = [];
  // One after the other: every search costs time that is measured here.
  for (const agent of agents) words.push(await untilFound(host, `${path}/${agent}`));
  console.error(`… memory: ${Math.round(performance.now() - beganMs)} ms for the words`);
  const seconds = (performance.now() - beganMs) / 1000;
  const total = words.reduce((sum, one) => sum + one, 0);
  const vectorsBefore = total - (await pendingOf(host, agents, path));
  const vectorsMs = performance.now();
  await Bun.sleep(10_000);
  const vectors = total - (await pendingOf(host, agents, path)) - vectorsBefore;
  const vectorsASecond = vectors / ((performance.now() - vectorsMs) / 1000);
  isDone = true;
  await firstTalk;
  let asked = 0;
  const search = () => {
    const at = asked++;
    const query = encodeURIComponent(`${WORDS[at % WORDS.length]} of the ${WORDS[(at * 7 + 3) % WORDS.length]}`);
    return timeOf(() => host.ask("GET", `${path}/${agents[at % AGENTS]}/memory?query=${query}`));
  };
  const before = cpuMs(host.server.process.pid);
  const searches = await repeat(SEARCHES, search);
  const cpuOfOne = (cpuMs(host.server.process.pid) - before) / SEARCHES;
  const health = await repeat(SEARCHES, () => timeOf(() => host.ask("GET", `${path}/${talker}`)));
  isDone = false;
  const talking = talk();
  const besideChat = await repeat(SEARCHES, search);
  isDone = true;
  await talking;
  return [
    {
      figure: `search of ${total.toLocaleString("en")} passages of ${AGENTS} agents, beside the vectors of the rest, p95`,
      value: percentile(searches, 0.95),
      unit: "ms",
      baseline: { what: "reading an agent, p95", value: percentile(health, 0.95) },
      goal: "≤ 50 ms",
      met: percentile(searches, 0.95) <= 50,
    },
    { figure: "the same, p50", value: median(searches), unit: "ms" },
    { figure: "processor time of one, with what else the host did meanwhile", value: cpuOfOne, unit: "ms" },
    { figure: "the same searches beside chat, p50", value: median(besideChat), unit: "ms" },
    { figure: "the same searches beside chat, p95", value: percentile(besideChat, 0.95), unit: "ms" },
    {
      figure: "passages that can be found by their words, beside chat",
      value: total / seconds,
      unit: "/s",
      goal: "≥ 200/s",
      met: total / seconds >= 200,
    },
    { figure: "their vectors, beside chat", value: vectorsASecond, unit: "/s" },
    {
      figure: "an answer of the embedded model meanwhile, p50",
      value: median(chatting),
      unit: "tokens/s",
      baseline: { what: "alone", value: median(chatAlone) },
    },
  ];
}

async function repeat(times: number, one: () => Promise<number>): Promise<number[]> {
  const all: number[] = [];
  for (let at = 0; at < times; at++) all.push(await one());
  return all;
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Text files with passages of the usual length, and bytes that are no text, as many as make a workspace of ten megabytes. */
async function fill(host: BenchHost, agent: string): Promise<void> {
  const write = async (name: string, body: string | Uint8Array) => {
    const response = await fetch(new URL(`${agent}/files/${name}`, host.server.url), {
      method: "PUT",
      headers: { "X-API-Key": host.key },
      body: body as string,
    });
    if (!response.ok) throw new Error(`${name}: ${response.status} ${await response.text()}`);
  };
  const each = Math.ceil(CHUNKS_EACH / FILES_EACH);
  for (let file = 0; file < FILES_EACH; file++) {
    await write(`notes/${file}.md`, Array.from({ length: each }, (_, at) => passage(file * each + at)).join("\n\n"));
  }
  const rest = BYTES_EACH - FILES_EACH * each * 800;
  const filler = "\u0000".repeat(FILE_BYTES);
  for (let left = rest, at = 0; left > 0; left -= FILE_BYTES, at++) await write(`data/${at}.bin`, filler);
}

const WORDS = (
  "harbour lighthouse keeper ledger winter timber copper garden bakery ferry violin orchard tunnel museum kettle island " +
  "railway lantern meadow basket pepper marble captain letter journey mirror anchor ladder candle pigeon statue thunder " +
  "village painter quarry saddle tailor walnut ribbon pocket needle oyster parcel signal turnip velvet willow yellow zipper"
).split(" ");

/** About 780 characters, different for each number. */
function passage(seed: number): string {
  const words: string[] = [`Note ${seed}:`];
  let state = seed + 1;
  for (let length = 0; length < 760; ) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    const word = WORDS[Math.floor(state / 65_536) % WORDS.length] ?? "";
    words.push(word);
    length += word.length + 1;
  }
  return words.join(" ");
}

interface Found {
  items: { text: string }[];
  degraded: string | null;
}

const search = async (host: BenchHost, agent: string, query: string): Promise<Found> =>
  (await host.ask("GET", `${agent}/memory?query=${encodeURIComponent(query)}&limit=1`)) as unknown as Found;

const COUNT = /(\d+) of (\d+) texts/;

/** Waits until the last passage is found; returns how many there are. */
async function untilFound(host: BenchHost, agent: string): Promise<number> {
  const each = Math.ceil(CHUNKS_EACH / FILES_EACH);
  for (;;) {
    const { degraded } = await search(host, agent, "harbour");
    const total = Number(COUNT.exec(degraded ?? "")?.[2] ?? 0);
    if (total >= FILES_EACH * each) return total;
    await Bun.sleep(1_000);
  }
}

async function pendingOf(host: BenchHost, agents: readonly string[], path: string): Promise<number> {
  let pending = 0;
  for (const agent of agents) {
    const { degraded } = await search(host, `${path}/${agent}`, "harbour");
    pending += Number(COUNT.exec(degraded ?? "")?.[1] ?? 0);
  }
  return pending;
}
