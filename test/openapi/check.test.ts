import { expect, test } from "bun:test";
import { z } from "zod";
import { openApiDocument } from "../../src/http/openapi.ts";
import { route } from "../../src/http/route.ts";
import { type Exchange, type OpenApi, openApiCheck } from "../support/openapi-check.ts";

const Thing = z.object({ thingId: z.string(), size: z.int().nullable(), createdAt: z.iso.datetime() });
const document = openApiDocument(
  [
    route({
      method: "GET",
      path: "/v1/things/:thingId",
      name: "getThing",
      tag: "host",
      summary: "One thing",
      access: "read",
      bound: "record",
      answer: Thing,
      handle: () => null,
    }),
  ],
  "test",
);
const check = openApiCheck(document as unknown as OpenApi);

const thing = { thingId: "a", size: null, createdAt: "2026-11-21T10:00:00.000Z" };
const error = { code: "not_found", message: "thing not found", status: 404, requestId: "r" };
const json = "application/json";
const answer = (value: unknown, more: Partial<Exchange> & { sent?: Record<string, string> } = {}): Exchange => ({
  method: "GET",
  path: "/v1/things/a?x=1",
  status: 200,
  body: JSON.stringify(value),
  headers: new Headers({ "content-type": json, "x-request-id": "r", ...more.sent }),
  ...more,
});

test("an answer that matches the document passes", () => {
  check(answer(thing));
  check(answer({ ...thing, size: 3 }));
  check(answer({ error }, { status: 404 }));
  check(answer(null, { method: "HEAD", body: "" }));
  check(answer({ error: { ...error, code: "method_not_allowed", status: 405 } }, { status: 405, method: "POST" }));
  check(answer({ error }, { status: 404, path: "/v1/nothing" }));
  check(answer({ status: "ok" }, { path: "/healthz" }));
  const problem = { type: "t", title: "t", detail: "d", ...error };
  check(
    answer({ ...problem, message: undefined }, { status: 404, sent: { "content-type": "application/problem+json" } }),
  );
});

test.each<[string, Exchange]>([
  ["a field that is not described", answer({ ...thing, secret: 1 })],
  ["a missing field", answer({ ...thing, size: undefined })],
  ["a field of another type", answer({ ...thing, size: "3" })],
  ["a time of another form", answer({ ...thing, createdAt: "yesterday" })],
  ["an error in a success's place", answer({ error })],
  ["a status that is not described", answer({ error: { ...error, status: 409 } }, { status: 409 })],
  ["an envelope of another status", answer({ error }, { status: 403 })],
  ["an envelope of another request", answer({ error: { ...error, requestId: "s" } }, { status: 404 })],
  ["an unknown code", answer({ error: { ...error, code: "oops" } }, { status: 404 })],
  ["another content type", answer(thing, { sent: { "content-type": "text/html" } })],
  ["a parameter that JSON has not", answer(thing, { sent: { "content-type": `${json}; charset=utf-8` } })],
  ["a header that is not described", answer(thing, { sent: { etag: '"a"' } })],
  ["a success where there is no operation", answer(thing, { method: "PUT" })],
  ["a success where there is no path", answer(thing, { path: "/v1/nothing" })],
])("%s is refused", (_, exchange) => {
  expect(() => check(exchange)).toThrow("does not match /openapi.json");
});

test("an answer without X-Request-Id is refused", () => {
  const exchange = answer(thing);
  exchange.headers.delete("x-request-id");
  expect(() => check(exchange)).toThrow("X-Request-Id is missing");
});
