import { afterAll, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { z } from "zod";
import { VERSION } from "../../src/app/version.ts";
import { openApiDocument } from "../../src/http/openapi.ts";
import { EventRecord } from "../../src/messages/events/event-record.ts";
import type { Described, OpenApi, Operation } from "../support/openapi-check.ts";
import { startTestServer } from "../support/test-server.ts";

type Parameter = { name: string; in: string; required?: boolean; schema: object };

const server = await startTestServer();
afterAll(() => server.stop());
const { routes } = server.app;
const document: OpenApi & Record<string, unknown> = (await server.ask("GET", "/openapi.json")).body;

const METHODS = ["get", "post", "put", "patch", "delete"];
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  METHODS.flatMap((method) => {
    const operation = item[method];
    const shared = item.parameters as unknown as object[];
    return operation ? [{ path, method, operation, parameters: [...shared, ...operation.parameters].map(behind) }] : [];
  }),
);
const operationAt = (path: string, method: string) =>
  operations.find((operation) => operation.path === path && operation.method === method)?.operation as Operation;

test("an independent validator accepts the document as OpenAPI 3.1", async () => {
  expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true });
});

/** The target of a reference in the document; throws if there is none. */
function resolve(reference: string): unknown {
  const parts = reference.slice(2).split("/");
  const found = parts.reduce<unknown>((node, part) => (node as Record<string, unknown>)[part], document);
  if (!reference.startsWith("#/") || found === undefined) throw new Error(`nothing at ${reference}`);
  return found;
}

function behind(parameter: object): Parameter {
  return ("$ref" in parameter ? resolve(String(parameter.$ref)) : parameter) as Parameter;
}

/** The responses of all operations, with what they refer to. */
const allResponses = (): Described[] =>
  operations.flatMap(({ operation }) =>
    Object.values(operation.responses).map(({ $ref, ...own }) =>
      $ref === undefined ? own : (resolve($ref) as Described),
    ),
  );

/** A route's path as in the document. */
const documented = (path: string): string => path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{file}");

/** Every object of the document, with the keys that lead to it. */
function* nodesOf(node: unknown, at: string[] = []): Generator<{ node: Record<string, unknown>; at: string[] }> {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) yield { node: node as Record<string, unknown>, at };
  for (const [key, value] of Object.entries(node)) yield* nodesOf(value, [...at, key]);
}

test("a body that has to give one of its fields says so, and which it has", () => {
  const changes = operations.filter(({ operation }) => {
    const schema = operation.requestBody?.content["application/json"]?.schema as Change | undefined;
    return schema?.minProperties === 1 && Object.keys(schema.properties).length > 0;
  });
  const at = changes.map(({ path, method }) => `${method} ${path}`);
  expect(at).toContain("patch /v1/instances/{instanceId}/agents/{agentId}");
  expect(at).toContain("patch /v1/instances/{instanceId}/agents/{agentId}/schedules/{scheduleId}");
});

interface Change {
  properties: object;
  minProperties?: number;
}

test("the document contains every route once, and nothing else", () => {
  expect(document).toEqual(JSON.parse(JSON.stringify(openApiDocument(routes, VERSION))));
  expect(operations.map(({ path, method }) => `${method} ${path}`).sort()).toEqual(
    routes.map(({ method, path }) => `${method.toLowerCase()} ${documented(path)}`).sort(),
  );
});

test("every reference leads somewhere, and every component is referenced", () => {
  const references = [...nodesOf(document)].flatMap(({ node }) => (typeof node.$ref === "string" ? [node.$ref] : []));
  for (const reference of references) resolve(reference);
  const used = new Set(references);
  const schemas = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  const shared = Object.keys(document.components.parameters).map((name) => `#/components/parameters/${name}`);
  expect([...schemas, ...shared].filter((name) => !used.has(name))).toEqual([]);
});

test("every operation has a unique id that is a valid method name, a section and a summary", () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^[a-z]+[A-Z][A-Za-z]+$/);
  const sections = (document.tags as { name: string }[]).map(({ name }) => name);
  for (const { operation } of operations) {
    const { tags, summary } = operation as Operation & { tags: string[]; summary: string };
    expect(sections).toContain(tags.join());
    expect(summary.length).toBeGreaterThan(5);
  }
});

test("an operation declares exactly the parameters of its path, each required, and no parameter twice", () => {
  for (const { path, parameters } of operations) {
    const inPath = parameters.filter(({ in: place }) => place === "path");
    expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
    expect(inPath.every(({ required }) => required === true)).toBe(true);
    const names = parameters.map(({ name, in: place }) => `${place} ${name}`);
    expect(new Set(names).size).toBe(names.length);
  }
});

test("every schema compiles, and has only keywords of JSON Schema 2020-12", () => {
  const $defs = JSON.parse(JSON.stringify(document.components.schemas).replaceAll("#/components/schemas/", "#/$defs/"));
  const schemas = [...nodesOf(document)].filter(({ at }) => at.at(-1) === "schema");
  expect(schemas.length).toBeGreaterThan(100);
  for (const { node } of schemas) {
    const own = JSON.parse(JSON.stringify(node).replaceAll("#/components/schemas/", "#/$defs/"));
    z.fromJSONSchema({ ...own, $defs });
  }
  for (const name of Object.keys($defs)) z.fromJSONSchema({ $ref: `#/$defs/${name}`, $defs });
  const text = JSON.stringify(document);
  expect(text).not.toContain('"$defs"');
  expect(text).not.toContain('"nullable"');
});

test("no schema has several types besides null: generators of clients refuse the document for them", () => {
  const several = [...nodesOf(document)].filter(
    ({ node: { type } }) => Array.isArray(type) && type.filter((one) => one !== "null").length > 1,
  );
  expect(several.map(({ at }) => at.join("."))).toEqual([]);
});

test("no two headers of an answer are one component: a generator of clients takes them for one", () => {
  for (const { headers = {} } of allResponses()) {
    const components = Object.values(headers).map((one) => (one as Described).$ref);
    expect(new Set(components).size).toBe(components.length);
  }
});

test("responses and parameters have what OpenAPI 3.1 requires of them", () => {
  const described = { $ref: expect.any(String) };
  for (const { operation, parameters } of operations) {
    for (const [status, given] of Object.entries(operation.responses)) {
      const response = (given.$ref === undefined ? given : resolve(given.$ref)) as Described;
      expect(status).toMatch(/^[2345]\d\d$/);
      expect(response).toHaveProperty("description");
      for (const header of Object.values(response.headers ?? {})) expect(header).toEqual(described);
    }
    for (const { name, in: place, schema } of parameters) {
      expect(["path", "query", "header"]).toContain(place);
      expect(name).toBeTruthy();
      expect(schema).toBeObject();
    }
  }
});

test("whatever needs a credential declares 401 and 403, and the rest needs none", () => {
  for (const route of routes) {
    const operation = operationAt(documented(route.path), route.method.toLowerCase());
    const { security, responses } = operation as Operation & { security: unknown[] };
    expect(security.length === 0).toBe(route.access === "public");
    if (route.access !== "public") expect(Object.keys(responses)).toContainValues(["401", "403"]);
  }
});

test("records are shared: an instance is described once", () => {
  const schemas = Object.keys(document.components.schemas);
  for (const name of ["Account", "Key", "Instance", "Agent", "File", "Message", "Run", "Skill", "Secret", "Error"]) {
    expect(schemas).toContain(name);
  }
  const copies = [...nodesOf(document)].filter(({ node }) => {
    const { properties } = node as { properties?: object };
    return properties !== undefined && "agentCount" in properties;
  });
  expect(copies).toHaveLength(1);
});

test("every GET returns a record with a name, for the type that a client makes of it", () => {
  for (const { path, method, operation } of operations) {
    const schema = operation.responses["200"]?.content?.["application/json"]?.schema;
    if (method !== "get" || schema === undefined) continue;
    const { data } = (schema.properties ?? {}) as { data?: { items: object } };
    expect([path, data?.items ?? schema]).toEqual([path, { $ref: expect.stringMatching(/schemas\/[A-Z][A-Za-z]+$/) }]);
  }
});

test("a message's answer is the record, its events, or 202", () => {
  const { responses, parameters } = operationAt("/v1/instances/{instanceId}/agents/{agentId}/messages", "post");
  expect(Object.keys(responses["200"]?.content ?? {})).toEqual(["application/json", "text/event-stream"]);
  expect(Object.keys(responses)).toContain("202");
  expect(parameters.map(behind).map(({ name }) => name)).toEqual(["Idempotency-Key", "Prefer"]);
});

test("a file is text with an ETag, unchanged or not, and new or not", () => {
  const file = "/v1/instances/{instanceId}/agents/{agentId}/files/{file}";
  const read = operationAt(file, "get").responses;
  expect(Object.keys(read)).toContainValues(["200", "304"]);
  expect(Object.keys(operationAt(file, "put").responses)).toContainValues(["200", "201", "412"]);
  expect(read["200"]).toMatchObject({ content: { "text/plain": {} }, headers: { ETag: {} } });
});

test("a status of several failures is described by all of them, each code with an example", () => {
  const send = operationAt("/v1/instances/{instanceId}/agents/{agentId}/messages", "post").responses["503"];
  const { description, content } = resolve(send?.$ref ?? "") as { description: string } & Described;
  expect(description).toMatch(/^The instance is not running.*Or: The host's disk or memory is full/);
  const { examples, schema } = content?.["application/json"] ?? {};
  expect(Object.keys(examples ?? {})).toEqual(["instance_not_ready", "internal_error"]);
  expect(schema).toEqual({ $ref: "#/components/schemas/Error" });
});

test("ids, cursors and all path parameters have a pattern, and examples that match it and the rest of their schema", () => {
  const formed = [...nodesOf(document)].filter(({ node }) => node.type === "string" && Array.isArray(node.examples));
  for (const { node } of formed) {
    for (const example of node.examples as string[]) z.fromJSONSchema(node).parse(example);
  }
  for (const { parameters } of operations) {
    for (const { name, in: place, schema } of parameters) {
      if (place === "header" || !(place === "path" || name === "after" || name.endsWith("Id"))) continue;
      // Only the host can make a cursor.
      const isExemplary =
        "examples" in schema || "limit" in Object.fromEntries(parameters.map((one) => [one.name, one]));
      expect({ name, formed: "pattern" in schema && isExemplary }).toEqual({ name, formed: true });
    }
  }
  for (const { node, at } of nodesOf(document)) {
    if (at.at(-2) !== "properties" || !/(?<!request|toolCall)Id$/.test(at.at(-1) ?? "") || node.type !== "string")
      continue;
    expect({ at, pattern: node.pattern }).toEqual({ at, pattern: expect.stringMatching(/^\^[a-z]+_/) });
  }
});

test("body fields that have a pattern have an example: one generated from the pattern would say nothing", () => {
  const bare = [...nodesOf(document)].filter(
    ({ node, at }) => at.includes("requestBody") && typeof node.pattern === "string" && !("examples" in node),
  );
  expect(bare.filter(({ at }) => at.at(-1) !== "propertyNames").map(({ at }) => at.join("."))).toEqual([]);
});

test("the example of an error matches the error's schema", () => {
  const $defs = JSON.parse(JSON.stringify(document.components.schemas).replaceAll("#/components/schemas/", "#/$defs/"));
  for (const response of Object.values(document.components.responses)) {
    for (const { schema, examples = {} } of Object.values(response.content ?? {})) {
      const type = z.fromJSONSchema({ $ref: String(schema.$ref).replace("#/components/schemas/", "#/$defs/"), $defs });
      for (const [code, { value }] of Object.entries(examples as Record<string, { value: Record<string, unknown> }>)) {
        type.parse(value);
        expect((value.error as { code: string } | undefined)?.code ?? value.code).toBe(code);
      }
    }
  }
});

test("every body and every success has an example, which fits its schema, and nothing in it is a filler", () => {
  const forZod = (value: object) =>
    JSON.parse(JSON.stringify(value).replaceAll("#/components/schemas/", "#/$defs/"), (key, inner) =>
      // Zod takes a schema that only requires a field for one that fits everything.
      key === "oneOf" && inner.every((one: object) => Object.keys(one).join() === "required") ? undefined : inner,
    );
  const $defs = forZod(document.components.schemas);
  for (const { operation } of operations) {
    const successes = Object.entries(operation.responses).filter(([status]) => status < "300");
    const contents = [operation.requestBody, ...successes.map(([, response]) => response)].map((one) => one?.content);
    for (const [type, shown] of contents.flatMap((content) => Object.entries(content ?? {}))) {
      if (type === "application/gzip") continue;
      const { schema, example } = shown as { schema: object; example?: unknown };
      expect([operation.operationId, type, example]).not.toEqual([operation.operationId, type, undefined]);
      if (type === "application/json") z.fromJSONSchema({ ...forZod(schema), $defs }).parse(example);
      expect(Object.values((example as object) ?? {})).not.toContain("text");
    }
  }
});

test.each<[string, string, object, string[]?]>([
  ["/v1/instances/{instanceId}/secrets/{key}", "delete", { key: "API_TOKEN" }],
  ["/v1/instances/{instanceId}/skills/{name}", "delete", { name: "weather" }],
  ["/v1/instances/{instanceId}/agents/{agentId}/files/{file}", "delete", { name: "notes/today.md" }],
  ["/v1/embeddings", "post", { model: "local:all-minilm-l6-v2" }],
  ["/v1/approvals/{approvalId}/decision", "post", { status: "approved", decidedBy: expect.any(String) }],
  ["/v1/auth/keys", "post", { lastUsedAt: null, expiresAt: null }],
  ["/v1/instances/{instanceId}/agents/{agentId}/conversations", "post", { isDefault: false, messageCount: 0 }],
  ["/v1/instances/{instanceId}/import", "post", { model: null, heartbeat: { everySeconds: 1800 } }],
  ["/v1/usage", "get", { data: [{ model: "local:smollm2-135m-instruct" }] }, ["agentId", "instanceId", "day"]],
  ["/v1/mcp", "post", { result: {} }],
])("the example of %s %s is an answer that there may be", (path, method, shown, never = []) => {
  const [[, success] = []] = Object.entries(operationAt(path, method).responses);
  const example = success?.content?.["application/json"]?.example;
  expect(example).toMatchObject(shown);
  for (const field of never) expect(JSON.stringify(example)).not.toContain(`"${field}"`);
});

test("an agent's events are told apart by their type, and each type names the form that describes it", () => {
  const { oneOf, discriminator } = resolve("#/components/schemas/AgentEvent") as {
    oneOf: { $ref: string }[];
    discriminator: { propertyName: string; mapping: Record<string, string> };
  };
  expect(discriminator.propertyName).toBe("type");
  const typesOf = ($ref: string): string[] => {
    const { properties } = resolve($ref) as { properties: { type: { const?: string; enum?: string[] } } };
    return properties.type.enum ?? [properties.type.const ?? ""];
  };
  const described = oneOf.flatMap(({ $ref }) => typesOf($ref).map((type) => [type, $ref]));
  expect(discriminator.mapping).toEqual(Object.fromEntries(described));
});

test("an event stream names the schema of its events' data, and every event of its example fits it", () => {
  const { responses } = operationAt("/v1/instances/{instanceId}/agents/{agentId}/events", "get");
  const { "text/event-stream": stream } = responses["200"]?.content ?? {};
  const { schema, example } = stream as unknown as { schema: object; example: string };
  expect(schema).toMatchObject({ type: "string", contentSchema: { $ref: "#/components/schemas/AgentEvent" } });
  const data = [...example.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
  expect(data.length).toBeGreaterThan(1);
  const event = EventRecord.unwrap();
  for (const one of data) expect(event.parse(one)).toEqual(one);
});

test("no field of a request is an object that must be empty: the clients' types would refuse what it takes", () => {
  const empty: string[] = [];
  const look = (node: unknown, path: string): void => {
    if (typeof node !== "object" || node === null) return;
    const { type, properties, additionalProperties } = node as Record<string, unknown>;
    if (type === "object" && properties === undefined && additionalProperties === undefined) empty.push(path);
    for (const [key, value] of Object.entries(node)) look(value, `${path}/${key}`);
  };
  for (const { path, method, operation } of operations) look(operation.requestBody, `${method} ${path}`);
  expect(empty).toEqual([]);
});
