import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";

/** Accepts connections, and never answers. */
const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
afterAll(() => silent.stop(true));

const DESTINATION = JSON.stringify(join(import.meta.dir, "../../src/backup/destination.ts"));

/** What a process of its own says: Bun reads the environment of S3 once. */
async function said(call: string): Promise<string> {
  const program = `
    import { openDestination } from ${DESTINATION};
    const destination = openDestination("s3://kept/host", 10);
    await destination.${call}.catch((error) => console.log(error.message));
    process.exit();`;
  const env = {
    AWS_ENDPOINT: `http://127.0.0.1:${silent.port}`,
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
