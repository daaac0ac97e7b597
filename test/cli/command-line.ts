import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary } from "../support/binary.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";

/** It starts four times as fast as the sources do, and tests here start it hundreds of times. */
export const BINARY = await buildBinary();
/** As which it was called: tests read it in messages. */
export const CALLED = { argv0: "roost" };
/** Ends what hangs, and nothing else. */
const DEADLINE_MS = 120_000;

/** A folder for one test file: home, an empty data folder and configuration, deleted by `remove`. */
export interface Home {
  folder: string;
  dataDir: string;
  configDir: string;
  env: Record<string, string>;
  remove(): void;
}

export function makeHome(): Home {
  const folder = mkdtempSync(join(tmpdir(), "roost-cli-"));
  const configDir = join(folder, "config");
  const dataDir = join(folder, "data");
  mkdirSync(dataDir, { mode: 0o700 });
  return {
    folder,
    dataDir,
    configDir: join(configDir, "roost"),
    env: { HOME: folder, PATH: "/usr/bin:/bin", XDG_CONFIG_HOME: configDir, TERM: "xterm" },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export interface Ran {
  code: number;
  output: string;
  errors: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever it asked for
  json: () => any;
}

export interface RunOptions {
  input?: string;
  env?: Record<string, string>;
}

/** Runs `roost <words>` to its end; standard input is `input`, or empty. */
export async function run(home: Home, words: string[], { input = "", env = {} }: RunOptions = {}): Promise<Ran> {
  const child = Bun.spawn([BINARY, ...words], {
    ...CALLED,
    cwd: home.folder,
    env: { ...home.env, ...env },
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
    timeout: DEADLINE_MS,
  });
  const [code, output, errors] = await Promise.all([
    child.exited,
    Bun.readableStreamToText(child.stdout),
    Bun.readableStreamToText(child.stderr),
  ]);
  return { code, output, errors, json: () => JSON.parse(output) };
}

/** `run` with `--data`. */
export const operate = (home: Home, words: string[], options?: RunOptions): Promise<Ran> =>
  run(home, [...words, "--data", home.dataDir], options);

/** Text that grows, and can be waited for. */
export function createTranscript() {
  let seen = "";
  let from = 0;
  const watchers = new Set<() => void>();
  return {
    all: () => seen,
    add(text: string) {
      seen += text;
      for (const watcher of [...watchers]) watcher();
    },
    /** Resolves with the match when this has appeared after the previous match. */
    until(pattern: RegExp): Promise<RegExpExecArray> {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          watchers.delete(look);
          reject(new Error(`${pattern} did not appear in ${JSON.stringify(seen.slice(from))}`));
        }, DEADLINE_MS);
        const look = () => {
          const match = pattern.exec(seen.slice(from));
          if (!match) return;
          clearTimeout(timer);
          watchers.delete(look);
          from += match.index + match[0].length;
          resolve(match);
        };
        watchers.add(look);
        look();
      });
    },
  };
}

export interface Terminal extends AsyncDisposable {
  /** What the command has written so far. */
  screen(): string;
  until(pattern: RegExp): Promise<RegExpExecArray>;
  type(keys: string): void;
  /** Gives its window another width. */
  resize(cols: number): void;
  exited: Promise<number>;
  kill(signal: NodeJS.Signals): void;
  /** Closes its window; resolves with the exit code. */
  hangUp(): Promise<number>;
}

const ROWS = 40;

/** Runs `roost <words>` on a pseudo-terminal. Once it has exited, all that it wrote is on the screen. */
export function onTerminal(home: Home, words: string[], env: Record<string, string> = {}, cols = 120): Terminal {
  const transcript = createTranscript();
  const decoder = new TextDecoder();
  const written = Promise.withResolvers<void>();
  const child = Bun.spawn([BINARY, ...words], {
    ...CALLED,
    cwd: home.folder,
    env: { ...home.env, ...env },
    terminal: {
      cols,
      rows: ROWS,
      data: (_terminal, bytes) => transcript.add(decoder.decode(bytes, { stream: true })),
      exit: () => written.resolve(),
    },
  });
  return {
    screen: transcript.all,
    until: transcript.until,
    type: (keys) => void child.terminal?.write(keys),
    resize: (columns) => void child.terminal?.resize(columns, ROWS),
    exited: written.promise.then(() => child.exited),
    kill: (signal) => child.kill(signal),
    hangUp() {
      child.terminal?.close();
      return child.exited;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      child.terminal?.close();
    },
  };
}

export interface Server {
  url: string;
  stop(): Promise<number>;
  kill(): Promise<void>;
}

/** `roost serve` on the home's data folder; resolves when it listens. */
export async function startServer(home: Home, env: Record<string, string> = {}, port = "0"): Promise<Server> {
  const child = Bun.spawn([BINARY, "serve", "--data", home.dataDir, "--port", port], {
    ...CALLED,
    cwd: home.folder,
    env: { ...home.env, ROOST_LOG_FORMAT: "json", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const transcript = createTranscript();
  const decoder = new TextDecoder();
  void (async () => {
    for await (const bytes of child.stdout) transcript.add(decoder.decode(bytes, { stream: true }));
  })();
  const [, url = ""] = await transcript.until(/"event":"listening","url":"([^"]+)"/);
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return await child.exited;
  };
  return { url, stop: () => end("SIGTERM"), kill: async () => void (await end("SIGKILL")) };
}

/** A server that asks a scripted model, and a person who is signed in there. */
export async function serveSignedIn() {
  const home = makeHome();
  const mock = startMockModelServer();
  const server = await startServer(home, { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url });
  const stop = async () => {
    await server.stop();
    await mock.stop();
    home.remove();
  };
  const { code, errors } = await signIn(home, server.url, "ada@example.org");
  if (code === 0) return { home, mock, server, stop };
  await stop();
  throw new Error(`nobody could sign in: ${errors}`);
}

/** Registers with a new invite and signs in as a person would, with a code. */
export async function signIn(home: Home, url: string, email: string, credit = "10.00"): Promise<Ran> {
  const invite = (await operate(home, ["invite", "create", "--credit", credit, "--json"])).json().code;
  const child = Bun.spawn([BINARY, "login", "--url", url], {
    ...CALLED,
    cwd: home.folder,
    env: home.env,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const errors = createTranscript();
  void (async () => {
    for await (const bytes of child.stderr) errors.add(new TextDecoder().decode(bytes));
  })();
  const answer = async (question: RegExp, line: string) => {
    await errors.until(question);
    child.stdin.write(`${line}\n`);
    await child.stdin.flush();
  };
  await answer(/E-mail: /, email);
  await answer(/Invite: /, invite);
  await errors.until(/Code: /);
  const [mail] = (await operate(home, ["outbox", "--json"])).json();
  child.stdin.write(`${mail.code}\n`);
  await child.stdin.flush();
  const output = await Bun.readableStreamToText(child.stdout);
  return { code: await child.exited, output, errors: errors.all(), json: () => JSON.parse(output) };
}
