import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { runBinary, startBinary } from "./support/binary.ts";

const README = await Bun.file(resolve(import.meta.dir, "../README.md")).text();

/** The shell blocks of a section, as a reader would paste them. */
function blocksOf(heading: string): string[] {
  const section = README.split(/^## /m).find((part) => part.startsWith(heading)) ?? "";
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block ?? "");
}

test.skipIf(Bun.which("curl") === null)(
  "the README's conversation, pasted into a shell, ends with tokens from the embedded model",
  async () => {
    await using server = await startBinary();
    const data = ["--data", server.dataDir];
    const invite = JSON.parse((await runBinary(["invite", "create", "--credit", "1", "--json", ...data])).output);
    const [ask, signIn, talk] = blocksOf("First conversation, with curl alone").map((block) =>
      block.replace("http://127.0.0.1:7373", server.url),
    );

    const asked = await shell(`${ask}`, { INVITE: invite.code });
    expect(asked).toBe('{"sent":true,"expiresInSeconds":600}');
    const [mail] = JSON.parse((await runBinary(["outbox", "--json", ...data])).output);

    const preamble = (ask ?? "").split("\ncurl")[0];
    const said = await shell(`${preamble}\n${signIn}\n${talk}`, { CODE: mail.code });
    expect(said).toStartWith("retry: 2000\n\nid: 1\nevent: run.queued\n");
    expect(said.match(/^event: message\.delta$/gm)?.length).toBeGreaterThan(3);
    expect(said).toContain("event: run.completed");
  },
  60_000,
);

async function shell(script: string, env: Record<string, string>): Promise<string> {
  const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = await Bun.readableStreamToText(child.stdout);
  expect(await child.exited).toBe(0);
  return output;
}
