import { z } from "zod";

/** A request and its response. */
export interface Exchange {
  method: string;
  /** As sent, with its query. */
  path: string;
  status: number;
  headers: Headers;
  /** Text; null for a stream, whose frames are not checked. */
  body: string | null;
}

/** Throws if the document does not describe this response to this request. */
export type OpenApiCheck = (exchange: Exchange) => void;

type Json = Record<string, unknown>;
export interface Described {
  $ref?: string;
  headers?: Json;
  content?: Record<string, { schema: Json; example?: unknown; examples?: Record<string, unknown> }>;
}
export interface Operation {
  operationId: string;
  parameters: Json[];
  requestBody?: { required?: boolean; content: Record<string, { schema: Json }> };
  responses: Record<string, Described>;
}
export interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json>; responses: Record<string, Described>; parameters: Record<string, Json> };
}

/** Headers about a single response: if one is present, the document must describe it. */
const TELLING = [
  ...["etag", "last-modified", "content-disposition", "last-event-id", "x-should-retry"],
  ...["idempotent-replayed", "preference-applied", "retry-after", "www-authenticate"],
];

/** Creates the check of a document. Records are closed: a field that it does not describe is an error. */
export function openApiCheck({ paths, components }: OpenApi): OpenApiCheck {
  const patterns = Object.entries(paths).map(([path, operations]) => ({ pattern: patternOf(path), operations }));
  const $defs = closed(components.schemas);
  const compiled = new Map<Json, z.ZodType>();

  function compile(schema: Json): z.ZodType {
    const made = compiled.get(schema) ?? z.fromJSONSchema({ ...closed(schema), $defs });
    compiled.set(schema, made);
    return made;
  }

  /** What the document says about this response; null for a path outside the API. */
  function describedOf({ method, path, status }: Exchange): Described | null {
    const [at = ""] = path.split("?", 1);
    const known = patterns.find(({ pattern }) => pattern.test(at));
    if (!known && !at.startsWith("/v1/")) return null;
    const operation = known?.operations[method === "HEAD" ? "get" : method.toLowerCase()];
    // A path's parameters are next to its operations.
    if (!operation || Array.isArray(operation)) {
      const expected = known ? 405 : 404;
      // The limits by address and account are checked before the path.
      if (status === 429) return components.responses.rate_limited ?? null;
      if (status !== expected) throw new Error(`expected ${expected}: there is no such operation`);
      return components.responses.not_found ?? null;
    }
    const described = operation.responses[status];
    if (!described) throw new Error(`${operation.operationId} does not describe this status`);
    const name = described.$ref?.split("/").at(-1);
    return name === undefined ? described : (components.responses[name] ?? null);
  }

  function judge(exchange: Exchange): void {
    const { method, status, headers, body } = exchange;
    const described = describedOf(exchange);
    if (!described) return;
    const names = new Set(Object.keys(described.headers ?? {}).map((name) => name.toLowerCase()));
    const stray = TELLING.find((name) => headers.has(name) && !names.has(name));
    if (stray !== undefined) throw new Error(`the header ${stray} is not described`);
    const requestId = headers.get("x-request-id");
    if (requestId === null) throw new Error("X-Request-Id is missing");
    if (!described.content && body) throw new Error("expected no body");
    if (!described.content || method === "HEAD") return;

    const sent = headers.get("content-type") ?? "";
    const [bare = ""] = sent.split(";", 1);
    // Generated clients compare all of it with the document's before they read the JSON.
    const type = bare.endsWith("json") ? sent : bare;
    const schema = described.content[type]?.schema;
    if (!schema) throw new Error(`the content type ${type} is not described`);
    if (body === null || !type.endsWith("json")) return;
    const value = JSON.parse(body);
    const result = compile(schema).safeParse(value);
    if (!result.success) throw new Error(z.prettifyError(result.error));
    // An error of JSON-RPC has an envelope of its own.
    if (status < 400 || value.jsonrpc !== undefined) return;
    const error = type === "application/json" ? value.error : value;
    if (error.status !== status) throw new Error("the envelope has another status");
    const codes = Object.keys(described.content[type]?.examples ?? {});
    if (status !== 405 && !codes.includes(error.code))
      throw new Error(`the code ${error.code} is not described, but ${codes}`);
    if (error.requestId !== requestId) throw new Error("the envelope's requestId is not X-Request-Id");
  }

  return (exchange) => {
    try {
      judge(exchange);
    } catch (error) {
      const { method, path, status, body } = exchange;
      const answer = `${method} ${path.slice(0, 300)} → ${status} ${body?.slice(0, 500) ?? "a stream"}`;
      throw new Error(
        `the response does not match /openapi.json: ${error instanceof Error ? error.message : error}\n${answer}`,
      );
    }
  };
}

/** The paths that a path of the document stands for. As in the router, a part may be empty. */
function patternOf(path: string): RegExp {
  const literal = path.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${literal.replace("{file}", ".*").replaceAll(/\{\w+\}/g, "[^/]*")}$`);
}

/** The same schema for Zod: definitions are in `$defs`, and every object whose fields are described is closed. */
const closed = <T extends object>(schema: T): T =>
  JSON.parse(JSON.stringify(schema), (key, value) => {
    if (key === "$ref") return value.replace("#/components/schemas/", "#/$defs/");
    const isRecord = value?.type === "object" && value.properties !== undefined;
    return isRecord && value.additionalProperties === undefined ? { ...value, additionalProperties: false } : value;
  });
