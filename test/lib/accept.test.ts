import { expect, test } from "bun:test";
import { namesType, takesType } from "../../src/lib/accept.ts";

test.each<[string | null, boolean]>([
  [null, true],
  ["*/*", true],
  ["application/*, text/plain", true],
  ["Application/JSON;q=0.5", true],
  ["text/*, */*;q=0.1", true],
  ["application/json;q=0, */*", false],
  ["application/* ; q=0.0, */*", false],
  ["text/html, application/json-seq", false],
  ["", false],
])("whether a client with Accept: %s takes JSON: %p", (accept, takes) => {
  expect(takesType(accept, "application/json")).toBe(takes);
});

test.each<[string | null, boolean]>([
  ["application/problem+json", true],
  ["application/json, application/problem+json;q=0.5", true],
  ["application/problem+json;q=0, application/json", false],
  ["application/problem+json-seq", false],
  ["*/*", false],
  [null, false],
])("whether a client with Accept: %s asks for problem details: %p", (accept, asks) => {
  expect(namesType(accept, "application/problem+json")).toBe(asks);
});
