#!/usr/bin/env node
/**
 * Called by `npm start`, `npm test`, `npm run build` …: finds the pinned Bun (or fetches it), installs the packages of
 * bun.lock and runs the task. Plain Node without packages, because it runs on a fresh clone.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** The commands of each task, in order; arguments after `npm run <task> --` go to the last one. */
const TASKS = {
  start: (bun) => [
    [bun, "scripts/build.ts"],
    [join(ROOT, "dist/roost"), "serve", "--data", "./data"],
  ],
  test: (bun) => [[bun, "scripts/test.ts"]],
  build: (bun) => [[bun, "scripts/build.ts"]],
  check: (bun) => [[bun, "scripts/check.ts"]],
  bench: (bun) => [[bun, "bench/run.ts"]],
  eval: (bun) => [[bun, "eval/run.ts"]],
  fuzz: (bun) => [[bun, "scripts/fuzz.ts"]],
  release: (bun) => [[bun, "scripts/release.ts"]],
  client: (bun) => [[bun, "scripts/client.ts"]],
  docs: (bun) => [[bun, "scripts/settings-page.ts"]],
  schema: (bun) => [[bun, "scripts/schema.ts"]],
  example: (bun) => [[bun, "examples/on-anvil.ts"]],
};

async function main([task, ...rest]) {
  const commandsOf = TASKS[task];
  if (commandsOf === undefined)
    stop(`there is no task "${task ?? ""}"; the tasks are: ${Object.keys(TASKS).join(", ")}`, 2);
  installPackages(findBun() ?? fetchBun(), ".");
  // The project's own Bun from here on. (npm puts node_modules/.bin on the PATH, whose `bun` is only an installer.)
  const bun = findBun() ?? stop("bun.lock's packages do not include Bun; remove node_modules and run this again");
  // A test chain and its clients, servers of S3 and OAuth: half a gigabyte that `npm start` should not wait for.
  if (["test", "check", "example"].includes(task)) installPackages(bun, "test/payers");
  for (const folder of ["test/s3", "test/oauth"]) if (["test", "check"].includes(task)) installPackages(bun, folder);
  if (["test", "check", "client"].includes(task)) installPackages(bun, "clients/tools");
  const commands = commandsOf(bun);
  for (const [index, command] of commands.entries()) {
    await run(index === commands.length - 1 ? [...command, ...rest] : command);
  }
}

const pinnedBun = () => JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).devDependencies.bun;

/** The package with Bun for this machine, chosen as the `bun` package does. */
function bunPackage() {
  const cpu = { arm64: "aarch64", x64: "x64" }[process.arch];
  if (cpu === undefined || !["darwin", "linux"].includes(process.platform)) {
    stop(
      `Roost runs on Linux and macOS, x64 and arm64, not on ${process.platform} ${process.arch}; on Windows, use WSL`,
    );
  }
  const musl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  return `@oven/bun-${process.platform}-${cpu}${musl ? "-musl" : ""}`;
}

const bunIn = (folder) => join(ROOT, folder, "node_modules", bunPackage(), "bin/bun");

/** A Bun of exactly the pinned version: the project's own, or the one on the PATH. */
function findBun() {
  const pin = pinnedBun();
  return [bunIn("."), bunIn(".cache/bun"), "bun"].find((path) => {
    const { status, stdout } = spawnSync(path, ["--version"], { encoding: "utf8", env: environment() });
    return status === 0 && stdout.trim() === pin;
  });
}

/** Fetches Bun into .cache/bun with npm, to use its registry, proxy and certificate settings. */
function fetchBun() {
  const wanted = `${bunPackage()}@${pinnedBun()}`;
  say(`fetching Bun ${pinnedBun()} (${wanted}) into .cache/bun, once`);
  // Its own folder rather than --prefix, which would make npm ignore its global settings.
  const folder = join(ROOT, ".cache/bun");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}\n");
  const flags =
    "--no-save --no-package-lock --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error".split(
      " ",
    );
  // Without these, npm would retry for over a minute when offline.
  const retries = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=3000"];
  const { status, error } = spawnSync("npm", ["install", ...flags, ...retries, wanted], {
    cwd: folder,
    env: { ...environment(), npm_config_local_prefix: folder },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const bun = status === 0 ? findBun() : undefined;
  if (bun !== undefined) return bun;
  stop(
    `npm could not fetch ${wanted}${error ? ` (${error.message})` : ""}. Check the network, or that npm's registry has ` +
      `it (npm config get registry), and run this again; or put Bun ${pinnedBun()} on the PATH.`,
  );
}

/** Installs a folder's bun.lock into its node_modules; a stamp file skips this when nothing has changed. */
function installPackages(bun, folder) {
  const cwd = join(ROOT, folder);
  const stampFile = join(cwd, "node_modules/.roost-stamp");
  const stamp = createHash("sha256").update(bunPackage());
  for (const file of ["package.json", "bun.lock"]) stamp.update(readFileSync(join(cwd, file)));
  const wanted = stamp.digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === wanted) return;

  say(`installing the packages of ${join(folder, "bun.lock")}`);
  const { status } = spawnSync(bun, ["install", "--frozen-lockfile", "--ignore-scripts"], {
    cwd,
    env: environment(),
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) {
    stop("the packages could not be installed. Check the network and the free disk space (2 GB) and run this again.");
  }
  writeFileSync(stampFile, wanted);
}

/** This process's environment, with caches inside the project if the home folder is not writable. */
function environment() {
  const env = { ...process.env };
  // Bun must trust what npm was told to trust.
  if (env.npm_config_cafile) env.NODE_EXTRA_CA_CERTS ??= env.npm_config_cafile;
  // Nor does it know npm's own settings of a proxy, or go past one to this machine.
  const proxied = {
    HTTP_PROXY: env.npm_config_proxy,
    HTTPS_PROXY: env.npm_config_https_proxy || env.npm_config_proxy,
    NO_PROXY: env.npm_config_noproxy,
  };
  for (const [name, value] of Object.entries(proxied)) {
    if (value && value !== "null" && !env[name] && !env[name.toLowerCase()]) env[name] = value;
  }
  const others = env.no_proxy || env.NO_PROXY;
  env.NO_PROXY = env.no_proxy = [...(others ? [others] : []), "localhost", "127.0.0.1", "::1"].join(",");
  // With this variable set, a binary built with Bun acts as Bun itself.
  delete env.BUN_BE_BUN;
  env.ORT_DISABLE_TELEMETRY = "1"; // the build and tests load ONNX Runtime too (src/models/local/supervisor.ts)
  // Concurrent requests to a model server. Bun's default is 256, and it reads this only when it starts.
  env.BUN_CONFIG_MAX_HTTP_REQUESTS ??= "4096";
  if (!homeIsWritable()) {
    env.BUN_INSTALL_CACHE_DIR ??= join(ROOT, ".cache/packages");
    env.npm_config_cache = join(ROOT, ".cache/npm");
  }
  return env;
}

function homeIsWritable() {
  try {
    accessSync(homedir(), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Runs one command; if it fails, exits with its exit code or signal. */
function run([command, ...words]) {
  const child = spawn(command, words, { cwd: ROOT, env: environment(), stdio: "inherit" });
  // On a terminal, Ctrl-C reaches the whole foreground group, including the child; passing it on would interrupt twice.
  for (const signal of ["SIGINT", "SIGHUP"]) process.on(signal, () => process.stdin.isTTY || child.kill(signal));
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  return new Promise((resolve) => {
    child.on("error", (error) => stop(`${command} could not be started: ${error.message}`));
    child.on("exit", (code, signal) => {
      for (const name of ["SIGINT", "SIGHUP", "SIGTERM"]) process.removeAllListeners(name);
      if (signal !== null) process.kill(process.pid, signal);
      else if (code !== 0) process.exit(code);
      else resolve();
    });
  });
}

function say(line) {
  console.error(`roost: ${line}`);
}

function stop(line, code = 1) {
  say(line);
  process.exit(code);
}

await main(process.argv.slice(2));
