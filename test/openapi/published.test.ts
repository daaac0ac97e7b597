import { afterAll, expect, test } from "bun:test";
import type { OpenApi } from "../support/openapi-check.ts";
import { startTestServer } from "../support/test-server.ts";

const server = await startTestServer();
afterAll(() => server.stop());
const document: OpenApi = (await server.ask("GET", "/openapi.json")).body;

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([method, operation]) =>
    method === "parameters" ? [] : [{ name: `${method.toUpperCase()} ${path}`, shared: item.parameters, ...operation }],
  ),
);

/**
 * Clients are generated from the document: a method is named for its operation id, a module for its tag. What has been
 * published stays. Additions are recorded with `bun test test/openapi/published.test.ts --update-snapshots`; look at
 * the difference.
 */
test("the operations of the published document are these", () => {
  expect(operations.map(({ name }) => name)).toMatchSnapshot();
});

test("the records of the published document have these names", () => {
  expect(Object.keys(document.components.schemas).sort()).toMatchSnapshot();
});

for (const { name, shared, ...operation } of operations) {
  test(`${name} is published as before: its id, tag, parameters, body and statuses`, () => {
    const { operationId, tags, parameters, requestBody, responses } = operation as Record<string, unknown>;
    expect({
      operationId,
      tags,
      parameters: [shared, parameters].flat().map((parameter) => JSON.stringify(parameter)),
      requestBody: JSON.stringify(requestBody),
      statuses: Object.keys(responses as object).join(),
    }).toMatchSnapshot();
  });
}
