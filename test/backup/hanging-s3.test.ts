import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { writeArchive } from "../../src/backup/archive.ts";

/** Accepts connections, and never answers. */
const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
afterAll(() => silent.stop(true));

const noise = crypto.getRandomValues(new Uint8Array(60_000));
async function* files() {
  const content = new Blob([noise]).stream();
  yield { name: "roost.db", size: noise.length, modifiedAtMs: 0, content };
}
const archive = await new Response(await writeArchive(files(), () => ({}), null)).bytes();

/** Has a backup, of which it sends only the beginning. */
const stalling = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch({ method, headers }) {
    if (method === "HEAD") return new Response(archive);
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.get("range") ?? "") ?? [];
    if (last !== undefined) {
      const part = archive.slice(Number(first), Number(last) + 1);
      const range = `bytes ${first}-${last}/${archive.length}`;
      return new Response(part, { status: 206, headers: { "Content-Range": range } });
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    hanging.push(resolve);
    return new Response(
      new ReadableStream({
        async pull(controller) {
          controller.enqueue(archive.slice(0, 30_000));
          await promise;
        },
      }),
      { headers: { "Content-Length": String(archive.length) } },
    );
  },
});
const hanging: (() => void)[] = [];
afterAll(() => {
  for (const end of hanging) end();
  return stalling.stop(true);
});

const DESTINATION = JSON.stringify(join(import.meta.dir, "../../src/backup/destination.ts"));
const ARCHIVE = JSON.stringify(join(import.meta.dir, "../../src/backup/archive.ts"));

/** What a process of its own says: Bun reads the environment of S3 once. */
async function said(call: string, port = silent.port, patienceMs = 10): Promise<string> {
  const program = `
    import { openDestination } from ${DESTINATION};
    import { readArchive } from ${ARCHIVE};
    const takes = async ({ content }) => { for await (const _ of content); };
    const destination = openDestination("s3://kept/host", ${patienceMs});
    await destination.${call}.catch((error) => console.log(error.message));
    process.exit();`;
  const env = {
    AWS_ENDPOINT: `http://127.0.0.1:${port}`,
    AWS_ACCESS_KEY_ID: "any",
    AWS_SECRET_ACCESS_KEY: "any",
  };
  const child = Bun.spawn([process.execPath, "-e", program], { env, stdout: "pipe" });
  return await new Response(child.stdout).text();
}

test.each([
  ["list()", "s3://kept/host/ cannot be listed"],
  ['find("a.tar.zst")', "s3://kept/host/a.tar.zst cannot be read"],
  ['isBackup("a.tar.zst")', "s3://kept/host/a.tar.zst cannot be read"],
  ['remove("a.tar.zst")', "s3://kept/host/a.tar.zst cannot be removed"],
])("%s is given up if the server hangs, and says which one does and what to check", async (call, what) => {
  expect(await said(call)).toBe(
    `${what}: http://127.0.0.1:${silent.port} does not answer within 0.01 seconds; ` +
      "check AWS_ENDPOINT, AWS_REGION, the bucket and what the key may do\n",
  );
});

test("a backup of which the server sends only the beginning is given up, and not called damaged", async () => {
  const call = 'find("a.tar.zst").then(({ content }) => readArchive(content, null, takes))';
  // On a busy machine the five seconds may pass before the server has sent the beginning.
  do {
    expect(await said(call, stalling.port, 5_000)).toBe(
      `s3://kept/host/a.tar.zst cannot be read: http://127.0.0.1:${stalling.port} does not answer within 5 seconds; ` +
        "check AWS_ENDPOINT, AWS_REGION, the bucket and what the key may do\n",
    );
  } while (hanging.length === 0);
});
