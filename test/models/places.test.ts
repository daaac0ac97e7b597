import { expect, test } from "bun:test";
import { createPlaces } from "../../src/models/local/places.ts";

const SIGNAL = new AbortController().signal;
const wanted = (name: string) => ({ name, version: "1", bytes: 10 });

test("a model that is removed while a request waits for its memory fails that request, and no other", async () => {
  const removed = new Set<string>();
  const places = createPlaces<string>({
    budgetBytes: 10,
    open({ name }) {
      if (removed.has(name)) throw new Error(`there is no ${name}`);
      return name;
    },
    isLoaded: () => true,
    close: async () => {},
  });
  const first = await places.take(wanted("first"), "ada", SIGNAL);
  const gone = places.take(wanted("gone"), "bob", SIGNAL).catch((error: Error) => error.message);
  const last = places.take(wanted("last"), "eve", SIGNAL);
  removed.add("gone");
  first.leave();
  expect(await gone).toBe("there is no gone");
  const held = await last;
  expect(held.value).toBe("last");
  held.leave();
});
