import { z } from "zod";
import type { Access } from "../limits/caller.ts";
import {
  HEADERS,
  type HeaderRefs,
  headers,
  type Json,
  PARAMETERS,
  PATH_PARAMETERS,
  parameter,
  REQUEST_ID,
  refTo,
  SCHEMAS,
} from "./openapi-components.ts";
import { exampleOf } from "./openapi-examples.ts";
import { FAILURES, type FailureName, failureResponse, responseName, rpcResponses } from "./openapi-failures.ts";
import { type Names, recordsOf } from "./openapi-records.ts";
import { eventsOf, openAiEvents, RPC_EVENTS } from "./openapi-streams.ts";
import { tidy, withFormsOfTypes } from "./openapi-tidy.ts";
import type { Route } from "./route.ts";
import { TAGS } from "./tags.ts";

/**
 * The OpenAPI 3.1 document of a route table. It is made from the schemas that the routes parse with: there is no second
 * list. Records may get more fields, so none is closed here.
 */
export function openApiDocument(routes: readonly Route[], version: string): Json {
  const shared = Object.entries(SCHEMAS).map(([name, schema]): [z.ZodType, string] => [schema, name]);
  const names: Names = new Map([...shared, ...recordsOf(routes)]);
  const schemas = Object.fromEntries([...names].map(([schema, name]) => [name, convert(schema, "output", names)]));
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{file}");
    paths[path] ??= { parameters: pathParameters(path) };
    paths[path][route.method.toLowerCase()] = operationOf(route, names, schemas);
  }
  const used = new Set<string>(routes.map(({ tag }) => tag));
  return {
    openapi: "3.1.0",
    info: {
      title: "Roost",
      version,
      summary: "Agent Hosting Service API",
      description: DESCRIPTION,
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A token, or an API key" },
        apiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
      },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: failureResponses(routes),
      schemas,
    },
  };
}

const DESCRIPTION = `Agents with a persona and files live in instances, which cost money while they run.

**Authentication** is by a token (\`POST /v1/auth/send-code\`, then \`verify-code\`) or an API key (\`POST /v1/auth/keys\`):
\`Authorization: Bearer …\`, or \`X-API-Key: …\` for a key.

**Errors** have the form of \`Error\` on every path, or that of RFC 9457 with \`Accept: application/problem+json\`.

**Lists** come in pages: \`after\` takes the \`nextCursor\` of the page before.

**Repeating** a POST with the same \`Idempotency-Key\` gives its first answer again, for 24 hours.

**Money** is USDC as a decimal string with six digits. If the balance is too low, 402 says what to pay and where: send
exactly that amount, then the same request again with the transaction in \`X-PAYMENT\`. The amount is what is missing or was
asked for, at least the host's minimum top-up, rounded up to a cent, plus less than a cent that marks the payment as the
account's: 0.50 may become 1.005715. A person tops up in the console, or asks the host's operator for credit.`;

/** The scopes that an API key needs, as a security requirement lists roles. */
const SCOPES_FOR: Record<Access, string[]> = {
  public: [],
  read: ["read"],
  chat: ["chat"],
  write: ["write"],
  approve: ["approve"],
  account: ["write"],
  "account-read": ["read"],
  keys: ["read", "write", "chat"],
};

/** Whether the operation takes an `Idempotency-Key`. */
const isKeyed = ({ method, access, idempotent }: Route): boolean =>
  method === "POST" && access !== "public" && idempotent !== false;
const isConditional = ({ errors }: Route): boolean => errors?.includes("precondition_failed") ?? false;
const isPaid = ({ errors }: Route): boolean => errors?.includes("payment_required") ?? false;
const takesBody = ({ method }: Route): boolean => method === "POST" || method === "PUT" || method === "PATCH";
const isFile = ({ body, answer }: Route): boolean => body === "text/plain" || answer === "text/plain";
const mayStream = ({ answer, events, streamExample }: Route): boolean =>
  streamExample !== undefined || (events !== undefined && answer !== "text/event-stream");

function operationOf(route: Route, names: Names, schemas: Record<string, Json>): Json {
  return {
    operationId: route.name,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [route.tag],
    security: route.access === "public" ? [] : [{ token: [] }, { apiKey: SCOPES_FOR[route.access] }],
    parameters: [...queryParameters(route), ...headerParameters(route)],
    ...requestBody(route, names),
    responses: {
      ...successes(route, names, schemas),
      ...failures(route),
      ...(route.protocol === "json-rpc" ? rpcResponses() : {}),
    },
  };
}

function pathParameters(path: string): Json[] {
  const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    ...PATH_PARAMETERS[name as keyof typeof PATH_PARAMETERS],
  }));
  return [...named, REQUEST_ID];
}

function queryParameters(route: Route): Json[] {
  if (!route.query) return [];
  const { properties = {}, required = [] } = convert(route.query, "input") as {
    properties?: Json;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

function headerParameters(route: Route): Json[] {
  return [
    ...(isKeyed(route) ? [parameter("idempotencyKey")] : []),
    ...(isPaid(route) ? [parameter("payment"), parameter("signedPayment")] : []),
    ...(route.replay ? [parameter("prefer")] : []),
    ...(isConditional(route) ? [parameter("ifMatch")] : []),
    ...(isConditional(route) || isFile(route) ? [parameter("ifNoneMatch")] : []),
    ...(route.answer === "text/event-stream" ? [parameter("lastEventId")] : []),
    ...(route.protocol === "json-rpc" ? MCP_PARAMETERS : []),
  ];
}

/** `Accept` is not among them: by OpenAPI, the types of the answers stand for it. */
const MCP_PARAMETERS = [parameter("mcpVersion"), parameter("mcpMethod"), parameter("mcpName")];

function requestBody(route: Route, names: Names): Json {
  if (!route.body) return {};
  const { example } = route;
  if (route.body === "text/plain") {
    return { requestBody: { content: { [route.body]: { schema: { type: "string" }, example } } } };
  }
  if (route.body === "application/gzip") return { requestBody: { required: true, content: { [route.body]: ARCHIVE } } };
  const schema = schemaOf(route.body, "input", names);
  const needsFields = "anyOf" in schema || "oneOf" in schema || !route.body.safeParse({}).success;
  return { requestBody: { required: needsFields, content: { "application/json": { schema, example } } } };
}

/** Bytes, as OpenAPI 3.1 says it: a schema of a text would promise characters. */
const ARCHIVE = { schema: { contentMediaType: "application/gzip" } };

function successes(route: Route, names: Names, schemas: Record<string, Json>): Json {
  const { body, answer, status = 200 } = route;
  const content: Json = {};
  if (answer instanceof z.ZodType) {
    const schema = schemaOf(answer, "output", names);
    content["application/json"] = { schema, example: exampleOf(schema, schemas, route.name) };
  }
  if (answer === "text/plain")
    content[answer] = { schema: { type: "string" }, example: "# Notes\n\nTrains on Sundays.\n" };
  if (answer === "application/gzip") content[answer] = ARCHIVE;
  if (route.protocol === "json-rpc") content["text/event-stream"] = RPC_EVENTS;
  if (route.events) content["text/event-stream"] = eventsOf(schemaOf(route.events, "output", names));
  else if (route.streamExample) content["text/event-stream"] = openAiEvents(route.streamExample());
  const replayed = isKeyed(route) ? ({ "Idempotent-Replayed": "replayed" } as const) : {};
  const paid = isPaid(route)
    ? ({ "X-PAYMENT-RESPONSE": "paymentResponse", "PAYMENT-RESPONSE": "signedPaymentResponse" } as const)
    : {};
  const own = { ...(isFile(route) && ({ ETag: "etag" } as const)), ...headersOf(answer) };
  const shared = headers({ ...replayed, ...paid, ...own });
  const success = { ...shared, content };
  return {
    [status]: { description: mayStream(route) ? "Success; as events where `stream` is true" : "Success", ...success },
    ...(body === "text/plain" ? { 201: { description: "Success; the file is new", ...success } } : {}),
    ...(answer === "text/plain" ? { 304: { description: "Unchanged", ...shared } } : {}),
    ...(route.replay
      ? {
          202: {
            description: "Accepted, for `Prefer: respond-async`",
            ...headers({ ...replayed, "Preference-Applied": "preferenceApplied" }),
            content: {
              "application/json": {
                schema: refTo("Accepted"),
                example: exampleOf(refTo("Accepted"), schemas, route.name),
              },
            },
          },
        }
      : {}),
  };
}

/** The headers of an answer that is not JSON. */
function headersOf(answer: Route["answer"]): HeaderRefs {
  if (answer === "text/plain") return { "Last-Modified": "lastModified" };
  if (answer === "text/event-stream") return { "Last-Event-ID": "lastEventId" };
  return answer === "application/gzip" ? { "Content-Disposition": "contentDisposition" } : {};
}

const failures = (route: Route): Json =>
  Object.fromEntries(
    [...failuresOf(route)].map(([status, names]) => [
      status,
      { $ref: `#/components/responses/${responseName(names)}` },
    ]),
  );

/** What can go wrong in a route, by status. */
function failuresOf(route: Route): Map<number, FailureName[]> {
  const everyRoute: Partial<Record<FailureName, boolean>> = {
    invalid_request: takesBody(route) || mayRefuseQuery(route) || route.path.endsWith("*"),
    unauthorized: route.access !== "public",
    forbidden: route.access !== "public",
    not_found: route.path.includes(":"),
    conflict: isKeyed(route),
    gone: route.answer === "text/event-stream",
    payload_too_large: takesBody(route),
    rate_limited: true,
    internal_error: true,
    request_timeout: takesBody(route),
    host_full: route.method !== "GET" || route.answer === "text/event-stream" || route.answer === "application/gzip",
  };
  const own = new Set<string>(route.errors ?? []);
  const byStatus = new Map<number, FailureName[]>();
  for (const name of Object.keys(FAILURES) as FailureName[]) {
    if (!own.has(name) && everyRoute[name] !== true) continue;
    const { status } = FAILURES[name];
    byStatus.set(status, [...(byStatus.get(status) ?? []), name]);
  }
  return byStatus;
}

/** The responses of all failures, by name, also those of paths without an operation. */
function failureResponses(routes: readonly Route[]): Json {
  const everywhere: FailureName[][] = [["not_found"], ["rate_limited"]];
  const lists = [...everywhere, ...routes.flatMap((route) => [...failuresOf(route).values()])];
  return Object.fromEntries(lists.map((names) => [responseName(names), failureResponse(names)]));
}

const schemaOf = (schema: z.ZodType, io: "input" | "output", names: Names): Json => {
  const name = names.get(schema);
  return name === undefined ? convert(schema, io, names) : refTo(name);
};

/** A schema as JSON Schema 2020-12. Schemas inside it that have a name become references. */
function convert(schema: z.ZodType, io: "input" | "output", names: Names = new Map()): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    target: "draft-2020-12",
    override({ zodSchema, jsonSchema }) {
      tidy(jsonSchema, zodSchema);
      const name = zodSchema === (schema as unknown) ? undefined : names.get(zodSchema as unknown as z.ZodType);
      if (name === undefined) return;
      for (const key of Object.keys(jsonSchema)) delete jsonSchema[key as keyof typeof jsonSchema];
      Object.assign(jsonSchema, refTo(name));
    },
  });
  return withFormsOfTypes(json);
}

/** An id that does not exist is 404; everything else in a query may be invalid. */
const mayRefuseQuery = ({ query }: Route): boolean =>
  query instanceof z.ZodObject && !Object.keys(query.shape).every((name) => name.endsWith("Id"));
