import { z } from "zod";
import { STATUS_OF_CODE } from "../lib/app-error.ts";
import type { Route } from "./route.ts";

/** The OpenAPI 3.1 document of a route table. What it says is what the routes parse with: there is no second list. */
export function openApiDocument(routes: readonly Route[], version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{file}");
    const operations = paths[path] ?? {};
    paths[path] = operations;
    operations[route.method.toLowerCase()] = operationOf(route, path);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Roost", version, description: "Agent Hosting Service API", license: { name: "Apache-2.0" } },
    servers: [{ url: "/" }],
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        apiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
      },
      schemas: { Error: schemaOf(ErrorBody) },
    },
  };
}

const ErrorBody = z.object({
  error: z.object({
    code: z.enum(Object.keys(STATUS_OF_CODE) as [string, ...string[]]),
    message: z.string(),
    status: z.int(),
    requestId: z.string(),
  }),
});

function operationOf(route: Route, path: string): Record<string, unknown> {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  return {
    summary: route.summary,
    tags: [
      route.path.split("/")[2] === "instances"
        ? (route.path.split("/").at(-1) ?? "")
        : (route.path.split("/")[2] ?? ""),
    ].map((tag) => (tag.startsWith(":") || tag === "*" ? "instances" : tag)),
    security: route.access === "public" ? [] : [{ token: [] }, { apiKey: [] }],
    parameters: [...parameters, ...queryParameters(route)],
    ...(route.body ? { requestBody: { content: { "application/json": { schema: schemaOf(route.body) } } } } : {}),
    ...(route.method === "PUT" ? { requestBody: { content: { "text/plain": { schema: { type: "string" } } } } } : {}),
    responses: responsesOf(route),
  };
}

function queryParameters(route: Route): Record<string, unknown>[] {
  if (!route.query) return [];
  const { properties = {} } = schemaOf(route.query) as { properties?: Record<string, unknown> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: "query", required: false, schema }));
}

function responsesOf(route: Route): Record<string, unknown> {
  const success =
    route.answer instanceof z.ZodType
      ? { "application/json": { schema: schemaOf(route.answer) } }
      : { [route.answer]: { schema: { type: "string" } } };
  const responses: Record<string, unknown> = {
    [String(route.status ?? 200)]: { description: "Success", content: success },
  };
  const codes = [...(route.errors ?? []), ...commonErrors(route)];
  for (const code of codes) {
    responses[String(STATUS_OF_CODE[code])] = {
      description: code,
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    };
  }
  responses.default = responses["500"] ?? {
    description: "internal_error",
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
  };
  return responses;
}

function commonErrors(route: Route): (keyof typeof STATUS_OF_CODE)[] {
  return [
    ...(route.access === "public" ? [] : (["unauthorized", "forbidden"] as const)),
    ...(route.body || route.query || route.method === "PUT" ? (["invalid_request"] as const) : []),
    ...(route.body || route.method === "PUT" ? (["payload_too_large"] as const) : []),
    ...(route.path.includes(":") ? (["not_found"] as const) : []),
  ];
}

const schemaOf = (schema: z.ZodType) =>
  z.toJSONSchema(schema, { io: "input", unrepresentable: "any", target: "draft-2020-12" });
