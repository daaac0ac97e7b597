import type { OpenApi, Operation } from "../support/openapi-check.ts";
import { hostileBody, hostileText, valueFor } from "./hostile.ts";
import type { Random } from "./random.ts";
import type { RawRequest } from "./raw-request.ts";
import { type Header, REFUSED, type World } from "./world.ts";

export interface FuzzCase {
  request: RawRequest;
  /** The operation that the request is for. */
  operationId: string;
  /** Whether the request is valid HTTP; otherwise the server's parser may refuse it in its own way. */
  isHttp: boolean;
  /** Whether method and path are those of an operation, so that the document describes the answer. */
  isOperation: boolean;
  /** Whether only 401 is right. */
  isRefused: boolean;
}

interface Target {
  path: string;
  method: string;
  operation: Operation;
  /** Of path and operation. */
  parameters: { name: string; in: string; schema: Record<string, unknown> }[];
  isOpen: boolean;
}

/** What a case uses up, so that later cases have less. */
const DESTRUCTIVE = /^(delete(Instance|InstanceAgent|Key)|revokeTokens|signOut|stopInstance)$/;

const PATH_PARTS = [
  "%",
  "%zz",
  "%ff",
  "%00",
  "%ed%a0%80",
  "..",
  ".",
  "%2e%2e",
  "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
  "..%2f..%2fx",
  "a%2fb",
  "%5c..%5c",
  "",
  "x".repeat(10_000),
  "__proto__",
  "constructor",
  "inst_",
  "agt_0",
  "INST_018F",
  "a;b",
  "a:b",
  "*",
  ":id",
  "%0d%0aX-Injected:1",
  "👩‍👩‍👧",
  "%F0%9F%92%A5",
];

const HOSTILE_HEADERS: Header[] = [
  ["Accept", "application/problem+json"],
  ["Accept", "application/problem+json, */*;q=0.1"],
  ["Accept", "\u00ff"],
  ["X-Request-Id", "fuzz.1"],
  ["X-Request-Id", "not allowed"],
  ["X-Request-Id", "x".repeat(129)],
  ["X-Forwarded-For", "1.2.3.4, x"],
  ["Origin", "https://evil.example"],
  ["Expect", "100-continue"],
  ["Content-Encoding", "gzip"],
  ["Range", "bytes=0-1"],
  ["If-Modified-Since", "never"],
  ["Cookie", "a=b"],
  ["X-HTTP-Method-Override", "DELETE"],
  ["Connection", "close"],
  ["Upgrade", "websocket"],
  ["X-PAYMENT", ""],
  ["X-PAYMENT", '{"txHash":"0x00","network":"base"}'],
  ["X-PAYMENT", `{"txHash":"0x${"a".repeat(64)}","network":"__proto__"}`],
  ["X-PAYMENT", "[".repeat(4_000)],
  ["Authorization", ""],
  ["Authorization", "Bearer"],
  ["X-API-Key", "rst_live_\u00ff"],
  ["Host", "evil.example"],
];

const VALUES_OF: Record<string, string[]> = {
  "Idempotency-Key": ["fuzz-1", "fuzz-1", "fuzz-2", "", "a b", "\u00e9", "k".repeat(255), "k".repeat(256)],
  "If-Match": ["*", '"x"', "", "W/", '"', '"a", "b"'],
  "If-None-Match": ["*", '"x"', "", '"'],
  "Last-Event-ID": ["0", "1", "999999", "-1", "1e3", "", "9".repeat(400), "00", "\u00b2"],
  Prefer: ["respond-async", "respond-async, wait=1", "wait=x", ""],
};
const CONTENT_TYPES = [
  "text/plain",
  "application/json; charset=utf-16",
  "application/jsonx",
  "",
  ";",
  "multipart/form-data",
];
/** Some of these are unknown to every server; Bun's parser refuses them. */
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get", "FOO"];

/** The operations of a document, with everything that a case needs. */
export function targetsOf(document: OpenApi): Target[] {
  const shared = (parameter: Record<string, unknown>) =>
    (typeof parameter.$ref === "string"
      ? document.components.parameters[parameter.$ref.split("/").at(-1) ?? ""]
      : parameter) as Target["parameters"][number];
  return Object.entries(document.paths).flatMap(([path, { parameters, ...operations }]) =>
    Object.entries(operations).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation,
      parameters: [...(parameters as unknown as Operation["parameters"]), ...operation.parameters].map(shared),
      isOpen: (operation as Operation & { security: unknown[] }).security.length === 0,
    })),
  );
}

/** A request for one of the operations: valid, at a limit, or wrong in a few ways at once. */
export function makeCase(targets: readonly Target[], document: OpenApi, world: World, random: Random): FuzzCase {
  let target = random.pick(targets);
  if (DESTRUCTIVE.test(target.operation.operationId) && random.chance(0.97)) target = random.pick(targets);
  const strange = { method: random.chance(0.05), path: random.chance(0.15), headers: random.chance(0.2) };

  const method = strange.method ? random.pick(METHODS) : target.method;
  const path = pathFor(target, world, random, strange.path);
  const query = queryFor(target, document, random);
  const kind = random.chance(0.6) ? "token" : random.pick(Object.keys(world.credentials));
  const sent = headersFor(target, random);
  if (strange.headers) sent.push(random.pick(HOSTILE_HEADERS));
  const { body, type } = bodyFor(target, document, world, random);
  if (type !== null) sent.push(["Content-Type", type]);
  const wire = random.chance(0.75) ? "plain" : random.pick(["chunked", "pieces", "truncated", "pipelined"] as const);
  const headers = [...(world.credentials[kind] ?? []), ...sent];
  const request: RawRequest = { method, target: Buffer.from(path + query).toString("latin1"), headers, body, wire };
  const changesCredential = sent.some(([name]) => /^(authorization|x-api-key|host|expect|upgrade)$/i.test(name));
  const isOperation = !strange.method && !strange.path && !changesCredential;
  return {
    request,
    operationId: target.operation.operationId,
    isHttp: isHttp(request),
    isOperation,
    isRefused: isOperation && !target.isOpen && REFUSED.has(kind),
  };
}

/** What the grammar of HTTP allows, of a size that servers accept. */
function isHttp({ method, target, headers }: RawRequest): boolean {
  const known = METHODS.slice(0, 7).includes(method);
  const names = headers.map(([name]) => name.toLowerCase());
  const plain = headers.every(
    ([name, value]) => !["expect", "upgrade"].includes(name.toLowerCase()) && /^[\t\x20-\xff]*$/.test(value),
  );
  return (
    known && /^[\x21-\x7e]+$/.test(target) && target.length < 8_000 && plain && new Set(names).size === names.length
  );
}

function pathFor({ path }: Target, world: World, random: Random, strange: boolean): string {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");
  const spoiled = strange && names.length > 0 ? random.pick(names) : null;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const known = world.ids[path.includes("/skills/") || name !== "name" ? name : ""] ?? ["x"];
    if (name !== spoiled) return random.pick(known);
    const part = random.pick(PATH_PARTS);
    return name === "file" && random.chance(0.5) ? `a/${part}/b` : part;
  });
  if (!strange || spoiled !== null) return filled;
  return random.pick([
    `${filled}/`,
    `/${filled}`,
    filled.toUpperCase(),
    `${filled}/%`,
    filled.replace("/v1", "/v1/..//v1"),
  ]);
}

function queryFor({ parameters }: Target, document: OpenApi, random: Random): string {
  const parts: string[] = [];
  for (const { name, in: place, schema } of parameters) {
    if (place !== "query" || random.chance(0.5)) continue;
    const value = String(JSON.parse(valueFor(schema, document, random, 0)));
    const raw = random.pick(["%", "%ff", "%00", "a+b", "0", "101", "-1", "1e2", "%2B1", "x".repeat(5_000)]);
    parts.push(`${name}=${random.chance(0.5) ? encodeURIComponent(value) : raw}`);
    if (random.chance(0.1)) parts.push(`${name}=1`);
  }
  if (random.chance(0.05))
    parts.push(random.pick(["__proto__=1", "=", "&&", "limit", "limit[]=1", "?", "a=%ed%a0%80"]));
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function headersFor({ parameters }: Target, random: Random): Header[] {
  return parameters
    .filter(({ name, in: place }) => place === "header" && VALUES_OF[name] !== undefined && random.chance(0.25))
    .map(({ name }) => [name, random.pick(VALUES_OF[name] ?? [""])]);
}

function bodyFor(
  { method, operation, path }: Target,
  document: OpenApi,
  world: World,
  random: Random,
): { body: Uint8Array | null; type: string | null } {
  const described = operation.requestBody?.content["application/json"]?.schema;
  if (!described && method !== "PUT" && random.chance(0.8)) return { body: null, type: null };
  const spoil = random.pick([0, 0, 0, 0.1, 0.3]);
  const type = random.chance(0.95) ? "application/json" : random.pick(CONTENT_TYPES);
  let body: string | Uint8Array;
  if (random.chance(0.15)) body = hostileBody(random);
  else if (described) body = valueFor(described, document, random, spoil);
  else body = random.pick(["hello", hostileText(random), "{}"]);
  if (path.endsWith("send-code") && random.chance(0.5))
    body = JSON.stringify({ email: "a@example.com", inviteCode: world.inviteCode });
  return { body: typeof body === "string" ? Buffer.from(body) : body, type };
}
