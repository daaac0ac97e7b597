import { expect, test } from "bun:test";
import { createSeats } from "../../src/lib/seats.ts";

test("an owner has a few places, all owners together some more, and a place that is left is free again", () => {
  const seats = createSeats({ count: 4, ofOwner: 2 });
  const first = seats.take("a");
  expect(seats.take("a")).not.toBeNull();
  expect(seats.take("a")).toBeNull();
  expect(seats.take("b")).not.toBeNull();
  expect(seats.take("c")).not.toBeNull();
  expect(seats.take("d")).toBeNull();
  first?.();
  expect(seats.take("d")).not.toBeNull();
});
