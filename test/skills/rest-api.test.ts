import { expect, test } from "bun:test";
import { readEmbeddedFolder } from "../../src/lib/embedded-folder.ts";
import { parseSkill } from "../../src/skills/skill-file.ts";
import { builtIn, requestsIn, startService } from "./service.ts";

const template = readEmbeddedFolder("skills").get("rest-api/references/own-skill.md") ?? "";

/** The template with what stands between angle brackets filled in. */
function ownSkill(change: (text: string) => string = (text) => text) {
  const [, text = ""] = /^```\n(---[\s\S]*?)^```$/m.exec(template) ?? [];
  const filled = text
    .replaceAll("<api.example.com>", "api.example.com")
    .replaceAll("<EXAMPLE_TOKEN>", "EXAMPLE_TOKEN")
    .replace("<service, in small letters, with hyphens>", "shop")
    .replace(/<([^>]*)>/g, "$1");
  return parseSkill({ "SKILL.md": change(filled) });
}

test("the skill that an owner fills in can be installed, with its host and its secret", () => {
  const skill = ownSkill();
  expect(skill.name).toBe("shop");
  expect(skill.requires).toEqual({ secrets: ["EXAMPLE_TOKEN"], hosts: ["api.example.com"], tools: ["http_request"] });
  expect(skill.secretHosts).toEqual({ EXAMPLE_TOKEN: ["api.example.com"] });
  expect(skill.instructions).toContain("{{secret:EXAMPLE_TOKEN}}");
});

test("without a key, and with one at two hosts, it can be too", () => {
  const withoutKey = ownSkill((text) => text.replace(/ {2}requires-secrets.*\n/, ""));
  expect(withoutKey.secretHosts).toEqual({});
  const [, twice = ""] = /^ {2}`("TOKEN@.+")`\.$/m.exec(template) ?? [];
  const both = ownSkill((text) =>
    text
      .replace(/requires-secrets: .*/, `requires-secrets: ${twice}`)
      .replace(/requires-hosts: .*/, 'requires-hosts: "api.example.com files.example.com"'),
  );
  expect(both.secretHosts).toEqual({ TOKEN: ["api.example.com", "files.example.com"] });
});

test("the requests of the instructions reach a service that checks them", async () => {
  const stock = new Map([["tea", 12]]);
  const seen = new Set<string>();
  await using service = startService(ownSkill(), { EXAMPLE_TOKEN: "correct-horse" }, async (request, url) => {
    if (request.headers.get("authorization") !== "Bearer correct-horse") return new Response("", { status: 401 });
    if (request.method === "GET" && url.pathname === "/v1/orders" && url.searchParams.get("limit") === "20") {
      return Response.json({ data: [], next: null });
    }
    const key = request.headers.get("idempotency-key");
    if (request.method !== "POST" || url.pathname !== "/v1/orders" || !key) return new Response("", { status: 400 });
    if (request.headers.get("content-type") !== "application/json") return new Response("", { status: 415 });
    const { product, amount } = await request.json();
    if (!seen.has(key)) stock.set(product, (stock.get(product) ?? 0) - amount);
    seen.add(key);
    return Response.json({ product, amount }, { status: 201 });
  });
  const requests = requestsIn(builtIn("rest-api"));
  const statuses: number[] = [];
  for (const request of [...requests, ...requests]) statuses.push((await service.send(request)).status);
  expect(statuses).toEqual([200, 201, 200, 201]);
  // Sent twice with the same key, it was done once.
  expect(stock.get("tea")).toBe(10);
});
