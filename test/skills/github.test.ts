import { expect, test } from "bun:test";
import recorded from "./recorded/github.json";
import { type AskedRequest, builtIn, requestsIn, startService } from "./service.ts";

const skill = builtIn("github");
const [shown] = requestsIn(skill);
const TOKEN = "github_pat_correct-horse";

type Answer = [status: number, body: unknown];
const REPO = "/repos/ada/engine";
/** The service's routes, as far as the skill uses them: what each takes and answers. */
const ROUTES: [method: string, path: RegExp, parameters: string[], answer: Answer][] = [
  ["GET", /^$/, [], [200, { html_url: "https://github.com/ada/engine", full_name: "ada/engine" }]],
  ["GET", /^\/issues$/, ["state", "per_page", "page"], [200, recorded.issues]],
  ["POST", /^\/issues$/, ["title", "body", "labels"], [201, recorded.created]],
  ["GET", /^\/issues\/\d+$/, [], [200, recorded.issues[1]]],
  ["PATCH", /^\/issues\/\d+$/, ["state"], [200, { ...recorded.created, state: "closed" }]],
  ["GET", /^\/issues\/\d+\/comments$/, ["per_page", "page"], [200, recorded.comments]],
  ["POST", /^\/issues\/\d+\/comments$/, ["body"], [201, recorded.comments[0]]],
  ["POST", /^\/issues\/\d+\/labels$/, ["labels"], [200, recorded.issues[1]?.labels]],
  ["GET", /^\/pulls$/, ["state", "per_page", "page"], [200, recorded.pulls]],
  ["GET", /^\/pulls\/\d+$/, [], [200, recorded.pulls[0]]],
  ["GET", /^\/pulls\/\d+\/files$/, ["per_page", "page"], [200, recorded.files]],
  ["GET", /^\/commits\/[0-9a-f]{40}\/check-runs$/, [], [200, recorded.checks]],
  ["GET", /^\/contents\/.+$/, [], [200, "text of the file"]],
  ["GET", /^\/commits$/, ["per_page", "page", "path"], [200, []]],
  ["GET", /^\/releases\/latest$/, [], [200, { tag_name: "v2.0.0" }]],
];

/** As GitHub answers: it wants its version, an agent's name and a token, and knows no other paths. */
const startGitHub = () =>
  startService(skill, { GITHUB_TOKEN: TOKEN }, async (request, url) => {
    const { headers, method } = request;
    const reply = ([status, body]: Answer) => Response.json(body, { status });
    if (!headers.get("user-agent") || headers.get("user-agent")?.startsWith("Bun")) return reply([403, "User-Agent"]);
    if (headers.get("authorization") !== `Bearer ${TOKEN}`) return reply([401, recorded.unauthorized]);
    if (headers.get("x-github-api-version") !== "2022-11-28") return reply([400, "X-GitHub-Api-Version"]);
    if (!/^application\/vnd\.github(\.raw)?\+json$/.test(headers.get("accept") ?? "")) return reply([415, "Accept"]);
    if (/^\/search\/(issues|code)$/.test(url.pathname) && url.searchParams.get("q")?.includes("repo:ada/engine")) {
      return reply([200, { total_count: 2, incomplete_results: false, items: recorded.issues }]);
    }
    const path = url.pathname.startsWith(REPO) ? url.pathname.slice(REPO.length) : "?";
    const route = ROUTES.find(([of, pattern]) => of === method && pattern.test(path));
    if (!route) return reply([404, recorded.notFound]);
    const [, , parameters, answer] = route;
    const sent = method === "GET" ? Object.fromEntries(url.searchParams) : await request.json();
    if (method !== "GET" && headers.get("content-type") !== "application/json") return reply([415, "Content-Type"]);
    const unknown = Object.keys(sent).filter((name) => !parameters.includes(name));
    return unknown.length > 0 ? reply([422, { message: "Validation Failed", errors: unknown }]) : reply(answer);
  });

/** With the repository of this test for the one in the table. */
const filled = (path: string) =>
  path.replaceAll("owner/name", "ada/engine").replace("<head.sha>", recorded.pulls[0]?.head.sha ?? "");
const as = (request: Partial<AskedRequest> & { path: string }): AskedRequest => ({
  method: "GET",
  ...request,
  url: `https://api.github.com${filled(request.path)}`,
  headers: { ...shown?.headers, ...request.headers },
});

test("the request that the instructions show is accepted, with the token in its place", async () => {
  await using service = startGitHub();
  const { status, body } = await service.send({ method: "GET", ...shown, url: filled(shown?.url ?? "") });
  expect(status).toBe(200);
  expect(JSON.parse(body).html_url).toBe("https://github.com/ada/engine/issues/7");
});

test("every path of the reading table exists, and its answer has the fields that are told", async () => {
  await using service = startGitHub();
  const section = skill.instructions.split("## Reading")[1]?.split("## Writing")[0] ?? "";
  const paths = Array.from(section.matchAll(/`(\/[^`]+)`/g), ([, path]) => path ?? "");
  expect(paths).toHaveLength(13);
  for (const path of paths)
    expect({ path, ...(await service.send(as({ path }))) }).toMatchObject({ path, status: 200 });
  const read = async (path: string) => JSON.parse((await service.send(as({ path }))).body);
  const [change, picture] = await read("/repos/owner/name/pulls/8/files?per_page=100");
  for (const field of ["filename", "additions", "deletions", "patch"]) expect(change).toHaveProperty(field);
  expect(picture).not.toHaveProperty("patch");
  const { check_runs } = await read("/repos/owner/name/commits/<head.sha>/check-runs");
  expect([check_runs[0].name, check_runs[0].conclusion, check_runs[0].output.summary]).not.toContain(undefined);
  const issues = await read("/repos/owner/name/issues?state=open&per_page=30");
  expect(issues.map((issue: object) => Object.hasOwn(issue, "pull_request"))).toEqual([true, false]);
  // The example: one of two is a draft.
  const pulls = await read("/repos/owner/name/pulls?state=open&per_page=30");
  expect(pulls.map(({ draft }: { draft: boolean }) => draft)).toEqual([false, true]);
  const raw = { Accept: "application/vnd.github.raw+json" };
  expect((await service.send(as({ path: "/repos/owner/name/contents/src", headers: raw }))).status).toBe(200);
});

test("every request of the writing table is accepted, with the body that stands there", async () => {
  await using service = startGitHub();
  const section = skill.instructions.split("## Writing")[1]?.split("## Example")[0] ?? "";
  const rows = Array.from(section.matchAll(/^\| .+? \| (POST|PATCH) `([^`]+)`, `body`: (.+) \|$/gm));
  expect(rows).toHaveLength(4);
  const headers = { "Content-Type": "application/json" };
  for (const [, method = "", path = "", bodies = ""] of rows) {
    for (const [, body = ""] of bodies.matchAll(/`(\{.+?\})`/g)) {
      const { status } = await service.send(as({ method, path, headers, body }));
      expect({ body, status: status === 200 || status === 201 }).toEqual({ body, status: true });
    }
  }
});

test("the errors that the instructions explain are those of the service", async () => {
  await using service = startGitHub();
  const statusOf = async (request: AskedRequest) => (await service.send(request)).status;
  const path = "/repos/owner/name/issues/7";
  expect(await statusOf(as({ path, headers: { Authorization: "Bearer wrong" } }))).toBe(401);
  expect(await statusOf(as({ path: "/repos/owner/none" }))).toBe(404);
  const headers = { "Content-Type": "application/json" };
  expect(await statusOf(as({ method: "POST", path: "/repos/owner/name/issues", headers, body: '{"titel":"x"}' }))).toBe(
    422,
  );
  for (const status of [401, 403, 404, 410, 422])
    expect(skill.instructions).toMatch(new RegExp(`^\\| ${status}\\b`, "m"));
});

test("the token goes nowhere but to the service's own host", async () => {
  expect(skill.secretHosts).toEqual({ GITHUB_TOKEN: ["api.github.com"] });
  await using service = startGitHub();
  const elsewhere = { method: "GET", url: "https://api.github.com.example.com/", headers: shown?.headers ?? {} };
  await expect(service.send(elsewhere)).rejects.toThrow("is not declared");
});
