import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { NO_NODES } from "./no-nodes.ts";
import { ONE_ADDRESS } from "./one-address.ts";

const ROOT = resolve(import.meta.dir, "../..");
/** Only ends what hangs. */
const START_DEADLINE_MS = 120_000;

let built: Promise<string> | undefined;

/** The path of an up-to-date `dist/roost`: built at most once in a test run, found fresh in milliseconds. */
export function buildBinary(): Promise<string> {
  built ??= (async () => {
    const child = Bun.spawn([process.execPath, "scripts/build.ts"], { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
    const [code, errors] = await Promise.all([child.exited, Bun.readableStreamToText(child.stderr)]);
    if (code !== 0) throw new Error(`the build failed:\n${errors}`);
    return join(ROOT, "dist/roost");
  })();
  return built;
}

export interface LogLine {
  event?: string;
  url?: string;
  [member: string]: unknown;
}

export interface StartOptions {
  /** Arguments after `serve`. */
  args?: string[];
  /** The child's environment, besides what a server needs in a test. It inherits nothing from this process. */
  env?: Record<string, string>;
  cwd?: string;
  /** By default any free one. */
  port?: number;
  /** By default a new one, removed by `stop` and `kill`. */
  dataDir?: string;
  /** By default `dist/roost`. */
  binary?: string;
  /** A command that runs its arguments, such as `["sh", "-c", 'ulimit -n 400; exec "$@"', "limited"]`. */
  under?: string[];
}

export interface RunningBinary extends AsyncDisposable {
  url: string;
  dataDir: string;
  process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  /** Every line of standard output so far; those that are not JSON as `{ text }`. */
  logs: LogLine[];
  /** Standard error so far. */
  errors(): string;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number>;
  /** Sends SIGKILL, to simulate a crash. Resolves when the process has ended. */
  kill(): Promise<void>;
}

/** Starts the server and resolves when it listens. If it ends or times out first, throws an error with its output. */
export async function startBinary(options: StartOptions = {}): Promise<RunningBinary> {
  const binary = options.binary ?? (await buildBinary());
  const home = await mkdtemp(join(tmpdir(), "roost-home-"));
  const dataDir = options.dataDir ?? join(home, "data");
  const command = [binary, "serve", "--data", dataDir, "--port", String(options.port ?? 0), ...(options.args ?? [])];
  const child = Bun.spawn([...(options.under ?? []), ...command], {
    cwd: options.cwd ?? home,
    env: {
      HOME: home,
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      ROOST_LOG_FORMAT: "json",
      ...NO_NODES,
      ...ONE_ADDRESS,
      ...options.env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const logs: LogLine[] = [];
  let errors = "";
  const listening = Promise.withResolvers<string>();
  const outputRead = eachLine(child.stdout, (line) => {
    const log = parseLog(line);
    logs.push(log);
    if (log.event === "listening" && log.url !== undefined) listening.resolve(log.url);
  });
  const errorsRead = eachLine(child.stderr, (line) => {
    errors += `${line}\n`;
  });
  const ended = (async () => {
    const code = await child.exited;
    await Promise.all([outputRead, errorsRead]);
    listening.reject(
      new Error(`roost ended with ${code} before it listened:\n${errors}${JSON.stringify(logs, null, 1)}`),
    );
    await rm(home, { recursive: true, force: true });
    return code;
  })();
  const deadline = setTimeout(() => {
    listening.reject(new Error(`roost did not listen within ${START_DEADLINE_MS} ms:\n${errors}`));
    child.kill("SIGKILL");
  }, START_DEADLINE_MS);

  const stop = async (): Promise<number> => {
    child.kill("SIGTERM");
    return await ended;
  };
  try {
    const url = await listening.promise;
    return {
      url,
      dataDir,
      process: child,
      logs,
      errors: () => errors,
      stop,
      async kill() {
        child.kill("SIGKILL");
        await ended;
      },
      async [Symbol.asyncDispose]() {
        await stop();
      },
    };
  } finally {
    clearTimeout(deadline);
  }
}

/** Runs a command of the binary to its end: `runBinary(["config", "--json"])`. */
export async function runBinary(
  args: string[],
  options: Pick<StartOptions, "env" | "cwd" | "binary"> & { input?: string } = {},
): Promise<{ code: number; output: string; errors: string }> {
  const home = await mkdtemp(join(tmpdir(), "roost-home-"));
  try {
    const child = Bun.spawn([options.binary ?? (await buildBinary()), ...args], {
      cwd: options.cwd ?? home,
      env: { HOME: home, PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...NO_NODES, ...ONE_ADDRESS, ...options.env },
      stdin: new Blob([options.input ?? ""]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [code, output, errors] = await Promise.all([
      child.exited,
      Bun.readableStreamToText(child.stdout),
      Bun.readableStreamToText(child.stderr),
    ]);
    return { code, output, errors };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function eachLine(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  }
  if (rest !== "") take(rest);
}

function parseLog(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return { text: line };
  }
}
