/**
 * The README's first conversation, pasted into a shell, with the given binary alone in an empty folder. A program of
 * its own, so that a test can run all of it without a network.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { runBinary, startBinary } from "./support/binary.ts";

const README = await Bun.file(resolve(import.meta.dir, "../README.md")).text();

/** The shell blocks of a section, as a reader would paste them. */
function blocksOf(heading: string): string[] {
  const section = README.split(/^## /m).find((part) => part.startsWith(heading)) ?? "";
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block ?? "");
}

async function shell(script: string, env: Record<string, string>): Promise<string> {
  const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = await Bun.readableStreamToText(child.stdout);
  if ((await child.exited) !== 0) throw new Error(`the shell failed after saying ${output}`);
  return output;
}

const binary = process.argv[2] ?? "";
const folder = dirname(binary);
const dataDir = mkdtempSync(join(tmpdir(), "roost-readme-"));
try {
  await using server = await startBinary({ binary, cwd: folder, dataDir });
  const command = async (...words: string[]) =>
    JSON.parse((await runBinary([...words, "--json", "--data", dataDir], { binary, cwd: folder })).output);
  const [ask = "", signIn = "", talk = ""] = blocksOf("First conversation, with curl alone").map((block) =>
    block.replace("http://127.0.0.1:7373", server.url),
  );
  const { code: INVITE } = await command("invite", "create", "--credit", "1");
  const asked = await shell(ask, { INVITE });
  const [{ code: CODE }] = await command("outbox");
  const variables = ask.split("\ncurl")[0] ?? "";
  const said = await shell(`${variables}\n${signIn}\n${talk}`, { CODE });
  console.log(JSON.stringify({ asked, said }));
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
