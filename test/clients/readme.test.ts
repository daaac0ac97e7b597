import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildClient, CLIENT, runTool } from "../../scripts/client.ts";
import { startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";

const folder = mkdtempSync(join(tmpdir(), "roost-client-"));
const mock = startMockModelServer({ record: false, answer: () => ({ kind: "text", tokens: ["A slim", " novel."] }) });
const server = await startTestServer({ ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url });
beforeAll(async () => {
  const installed = join(folder, "node_modules/roost-client");
  mkdirSync(installed, { recursive: true });
  await buildClient(installed);
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
  rmSync(folder, { recursive: true });
});

const LIB = ["ES2022", "DOM", "DOM.Iterable", "DOM.AsyncIterable"];

/** The examples of the README, as one program. */
async function program(): Promise<string> {
  const readme = await Bun.file(join(CLIENT, "README.md")).text();
  const text = Array.from(readme.matchAll(/```js\n([\s\S]*?)```/g), ([, example = ""]) => example).join("\n");
  return text
    .replace('import { RoostError } from "roost-client";\n', "")
    .replace("createRoost }", "createRoost, RoostError }");
}

test.each([
  ["Node", "node"],
  ["Bun", process.execPath],
])("the README's examples run with %s against a server", async (_, runtime) => {
  const owner = await server.signUp();
  const { key } = (await owner.ask("POST", "/v1/auth/keys", {})).body;
  await Bun.write(join(folder, "example.mjs"), await program());
  const child = Bun.spawn([runtime, "example.mjs"], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", ROOST_URL: server.url, ROOST_API_KEY: key },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, problems] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect(problems).toBe("");
  expect(await child.exited).toBe(0);
  expect(out).toStartWith("A slim novel.home running\n");
  expect(out).toMatch(/\d+ run\.queued\n\d+ run\.started\n/);
  expect(out).toEndWith("run.completed\nnot_found 404 instance not found true\n");
});

test("a typed program compiles against the installed package", async () => {
  const compilerOptions = { module: "nodenext", strict: true, noEmit: true, types: [], lib: LIB };
  await Bun.write(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["typed.ts"] }));
  await Bun.write(join(folder, "package.json"), '{ "type": "module" }');
  await Bun.write(
    join(folder, "typed.ts"),
    `import { createRoost, type Message, type RoostError } from "roost-client";
const roost = createRoost({ credential: "rst_live_x" });
export const ask = async (): Promise<Message> => {
  for await (const { name } of roost.all("/v1/instances")) console.log(name.length);
  for await (const event of roost.events({ instanceId: "i", agentId: "a" })) {
    if (event.type === "message.delta") console.log(event.delta.length);
  }
  const text: string = await roost.get("/v1/instances/{instanceId}/agents/{agentId}/files/{file}", {
    path: { instanceId: "i", agentId: "a", file: "b" },
  });
  // @ts-expect-error a message needs its text
  await roost.ask({ instanceId: "i", agentId: "a" }, {});
  // @ts-expect-error a path needs its parameters
  await roost.get("/v1/instances/{instanceId}");
  // @ts-expect-error there is no such path
  await roost.get("/v1/instance");
  return roost.ask({ instanceId: "i", agentId: "a" }, { message: text });
};
export const isPaid = ({ code, details }: RoostError): boolean => code === "payment_required" && details.x402 !== undefined;
`,
  );
  await runTool("typescript/bin/tsc", "--project", folder);
});
