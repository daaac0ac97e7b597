import { expect, test } from "bun:test";
import { targetOf } from "../../src/tools/target.ts";

test.each([
  [{ url: "https://a.example/x?y" }, "a.example:443", "GET"],
  [{ url: "https://A.example:8443/", method: "post" }, "a.example:8443", "POST"],
  [{ url: "http://a.example" }, "http://a.example:80", "GET"],
  [{ url: "https://user@a.example:443/" }, "a.example:443", "GET"],
  [{ url: "https://[::1]/" }, "[::1]:443", "GET"],
  [{ key: "a" }, null, null],
  [null, null, null],
])("%j goes to %s by %s", (input, host, method) => {
  expect(targetOf(input)).toEqual({ host, method });
});

test.each([{ url: "nowhere" }, { url: 7 }, { url: "file:///etc/passwd" }, { url: "data:,x" }])(
  "where %j goes cannot be said",
  (input) => expect(targetOf(input)).toBeNull(),
);
