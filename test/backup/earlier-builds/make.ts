/**
 * Makes a data folder as an earlier build of this repository made it: `bun test/backup/earlier-builds/make.ts COMMIT…`.
 * Each commit is unpacked into a temporary folder, installed with the lock file of its time, started on a terminal as a
 * person starts it, used over HTTP, and stopped. README.md says what the results are for.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { type MockModelServer, startMockModelServer } from "../../support/mock-model-server.ts";
import { NO_NODES } from "../../support/no-nodes.ts";

const ROOT = resolve(import.meta.dir, "../../..");
const BUN = process.execPath;
/** Only ends what hangs. */
const DEADLINE_MS = 60_000;

/** What a build said about its data just before it was stopped. */
export interface EarlierBuild {
  commit: string;
  schema: number;
  /** An API key of the owner: it must still open everything. */
  key: string;
  instanceId: string;
  agentId: string;
  /** After the last posting: decimal USDC. */
  balance: string;
  /** A call that waits for a decision, on an instance that was left running; null before there were approvals. */
  waiting: { approvalId: string; agent: string; runId: string } | null;
  /** The answer to each GET, by its path. */
  answers: Record<string, unknown>;
}

// biome-ignore lint/suspicious/noExplicitAny: what a build answers is what it answers
type Answer = any;
type Ask = (method: string, path: string, body?: object | string, headers?: Record<string, string>) => Promise<Answer>;

async function make(commit: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), "roost-earlier-"));
  using _ = { [Symbol.dispose]: () => rmSync(work, { recursive: true, force: true }) };
  const source = join(work, "source");
  mkdirSync(source);
  await run(["sh", "-c", `git archive ${commit} | tar -x -C ${source}`], ROOT);
  await run([BUN, "install", "--frozen-lockfile"], source);
  const model = startMockModelServer();
  try {
    await makeWith(commit, source, join(work, "data"), model);
  } finally {
    await model.stop();
  }
}

async function makeWith(commit: string, source: string, dataDir: string, model: MockModelServer): Promise<void> {
  const server = await startOnTerminal(source, dataDir, model.url);
  const used = await useEverything(server, model);
  const code = await server.stop();
  if (code !== 0) throw new Error(`${commit} ended with ${code}:\n${server.screen()}`);
  rmSync(join(dataDir, "cache"), { recursive: true, force: true });
  const schema = schemaOf(dataDir);
  const was: EarlierBuild = { commit, schema, ...used, balance: await balanceOffline(source, dataDir, used.balance) };
  const files: Record<string, Uint8Array> = {};
  for (const name of new Bun.Glob("**/*").scanSync({ cwd: dataDir, dot: true }))
    files[`data/${name}`] = readFileSync(join(dataDir, name));
  files["was.json"] = Buffer.from(JSON.stringify(was, null, 1));
  const target = join(import.meta.dir, `${String(schema).padStart(2, "0")}-${commit}.tar.zst`);
  writeFileSync(target, Bun.zstdCompressSync(await new Bun.Archive(files).bytes(), { level: 19 }));
  console.log(`${target}: ${Object.keys(was.answers).length} answers`);
}

/** From the file's header, so that SQLite leaves nothing beside it. */
const schemaOf = (dataDir: string): number => readFileSync(join(dataDir, "roost.db")).readUInt32BE(60);

const OWNER = "owner@roost.local";

/** What the command line says once everything is posted; the first build had none. */
async function balanceOffline(source: string, dataDir: string, otherwise: string): Promise<string> {
  const shown = await run([BUN, "src/main.ts", "account", "show", OWNER, "--data", dataDir, "--json"], source).catch(
    () => null,
  );
  return shown === null ? otherwise : JSON.parse(shown).balance;
}

interface Server {
  url: string;
  /** The token of the sign-in link that a first start shows. */
  link: string;
  screen(): string;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number>;
}

async function startOnTerminal(source: string, dataDir: string, modelUrl: string): Promise<Server> {
  let screen = "";
  const ready = Promise.withResolvers<[string, string]>();
  const decoder = new TextDecoder();
  const child = Bun.spawn([BUN, "src/main.ts", "serve", "--data", dataDir, "--port", "0"], {
    cwd: source,
    env: {
      HOME: source,
      PATH: process.env.PATH ?? "",
      ROOST_MODEL: "openai:mock",
      ROOST_OPENAI_BASE_URL: modelUrl,
      ...NO_NODES,
    },
    terminal: {
      cols: 200,
      rows: 40,
      data(_terminal, bytes) {
        screen += stripVTControlCharacters(decoder.decode(bytes, { stream: true }));
        const [, url, link] = /(http:\/\/127\.0\.0\.1:\d+)\/#link=([\w-]{20,})/.exec(screen) ?? [];
        if (url !== undefined && link !== undefined) ready.resolve([url, link]);
      },
    },
  });
  const deadline = setTimeout(() => child.kill("SIGKILL"), DEADLINE_MS);
  void child.exited.then(() => ready.reject(new Error(`it ended before it could be used:\n${screen}`)));
  const [url, link] = await ready.promise;
  return {
    url,
    link,
    screen: () => screen,
    async stop() {
      child.kill("SIGTERM");
      const code = await child.exited;
      clearTimeout(deadline);
      return code;
    },
  };
}

const SKILL = "---\nname: house-rules\ndescription: How this house answers.\n---\n\nAnswer briefly.\n";

/** Does what its API can do; what a build does not know yet is left out. */
async function useEverything(server: Server, model: MockModelServer): Promise<Omit<EarlierBuild, "commit" | "schema">> {
  let credential = "";
  /** Null if there is no such route yet. Throws where the build refuses. */
  const ask: Ask = async (method, path, body, headers = {}) => {
    const response = await fetch(server.url + path, {
      method,
      headers: {
        ...headers,
        ...(credential === "" ? {} : { Authorization: `Bearer ${credential}` }),
        ...(typeof body === "object" ? { "Content-Type": "application/json" } : {}),
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.status === 404 || response.status === 405) return null;
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text.startsWith("{") ? JSON.parse(text) : text;
  };
  credential = (await ask("POST", "/v1/auth/redeem-link", { link: server.link })).token;
  const name = "kept";
  const scopes = ["read", "write", "chat", "approve"];
  const { key } = await ask("POST", "/v1/auth/keys", { name, scopes }).catch(() =>
    ask("POST", "/v1/auth/keys", { name }),
  );
  await ask("PATCH", "/v1/auth/me", { name: "Ada", monthlyLimit: "100.00" });
  const { instanceId } = await ask("POST", "/v1/instances", { name: "home" });
  const home = `/v1/instances/${instanceId}`;
  const files = { "SOUL.md": "You are Bo, who keeps bees.\n", "notes/bees.md": "Two hives: north, south.\n" };
  const agent = await ask("POST", `${home}/agents`, { name: "Bo", displayName: "Bo of the bees", files });
  const agentId: string = agent?.agentId ?? "";
  const bo = `${home}/agents/${agentId}`;
  await ask("POST", `${home}/secrets`, { secrets: { HIVE_TOKEN: "a-secret-value" } });
  const paths = ["/v1/auth/me", "/v1/auth/keys", "/v1/instances", home, `${home}/secrets`, "/v1/billing/transactions"];
  if (agent !== null) {
    await ask("PUT", `${bo}/files/notes/honey.md`, "Twelve jars.\n");
    await ask("POST", `${home}/skills`, { name: "meeting-notes" });
    await ask("POST", `${home}/skills`, { files: { "SKILL.md": SKILL } });
    for (const message of ["How many hives are there?", "Und auf Deutsch: wie viele?"]) {
      model.script({ kind: "text", tokens: ["Two", " hives", ` for "${message}"`] });
      await ask("POST", `${bo}/messages`, { message });
    }
    paths.push(`${home}/agents`, bo, `${home}/skills`, `${bo}/messages`, `${bo}/files`);
    paths.push(`${bo}/files/notes/bees.md`, `${bo}/files/notes/honey.md`);
    paths.push(...(await laterParts(ask, bo, model)));
  }
  const waiting = await leaveWaiting(ask, model);
  if (waiting !== null) paths.push(`/v1/approvals/${waiting.approvalId}`);
  await ask("POST", `${home}/stop`);
  const answers: Record<string, unknown> = {};
  for (const path of paths) {
    const answer = await ask("GET", path);
    if (answer !== null) answers[path] = answer;
  }
  const { balance } = await ask("GET", "/v1/auth/me");
  return { key, instanceId, agentId, balance, waiting, answers };
}

/** Conversations, schedules, heartbeats and the OpenAI surface. Returns the paths that show them. */
async function laterParts(ask: Ask, bo: string, model: MockModelServer): Promise<string[]> {
  const paths: string[] = [];
  const conversation = await ask("POST", `${bo}/conversations`, { title: "Winter" });
  if (conversation !== null) {
    const { conversationId } = conversation;
    model.script({ kind: "text", tokens: ["Feed", " them."] });
    await ask("POST", `${bo}/messages`, { message: "What do they need in winter?", conversationId });
    paths.push(`${bo}/conversations`, `${bo}/messages?conversationId=${conversationId}`, `${bo}/runs`);
  }
  const everySeconds = 31_536_000;
  if ((await ask("POST", `${bo}/schedules`, { name: "Yearly", message: "Count the jars.", everySeconds })) !== null) {
    paths.push(`${bo}/schedules`);
  }
  // A build without heartbeats finds no field that it knows.
  const heartbeat = { everySeconds, timeZone: "UTC", activeHours: null };
  await ask("PATCH", bo, { heartbeat }).catch(() => null);
  const agentId = bo.split("/").at(-1);
  const response = await ask("POST", "/v1/responses", { model: agentId, input: "And in spring?" });
  if (response !== null) paths.push(`/v1/responses/${response.id}`);
  return paths;
}

/** A run that waits for a decision while its instance runs on, if the build asks for decisions. */
async function leaveWaiting(ask: Ask, model: MockModelServer): Promise<EarlierBuild["waiting"]> {
  if ((await ask("GET", "/v1/approvals")) === null) return null;
  const { instanceId } = await ask("POST", "/v1/instances", { name: "waits" });
  const agents = `/v1/instances/${instanceId}/agents`;
  const { agentId } = await ask("POST", agents, { name: "Cy", tools: { write_file: "ask" } });
  const agent = `${agents}/${agentId}`;
  const call = { name: "write_file", arguments: { name: "diary.md", text: "Swarmed today.\n" } };
  model.script({ kind: "tools", calls: [call] });
  const { runId } = await ask("POST", `${agent}/messages`, { message: "Note the swarm." }, { Prefer: "respond-async" });
  const deadline = Date.now() + DEADLINE_MS;
  while (Date.now() < deadline) {
    const { data } = await ask("GET", "/v1/approvals?status=open");
    if (data.length > 0) return { approvalId: data[0].approvalId, agent, runId };
    await Bun.sleep(20);
  }
  throw new Error("the run does not wait for a decision");
}

async function run(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: DEADLINE_MS });
  const [code, output, errors] = await Promise.all([
    child.exited,
    Bun.readableStreamToText(child.stdout),
    Bun.readableStreamToText(child.stderr),
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}:\n${errors}`);
  return output;
}

for (const commit of process.argv.slice(2)) await make(commit);
