import { expect, test } from "bun:test";
import { connect } from "node:net";
import { pino } from "pino";
import { listen } from "../../src/http/listener.ts";
import { createPace } from "../../src/http/pace.ts";

test("no more than so many requests begin in one turn, and the others follow in their order", async () => {
  const turns: (() => void)[] = [];
  const inPace = createPace(2, (then) => void turns.push(then));
  const begun: number[] = [];
  const begin = (number: number) => inPace(() => void begun.push(number));
  const nextTurn = async () => {
    for (const then of turns.splice(0)) then();
    await Promise.resolve();
  };
  for (const number of [1, 2, 3, 4, 5]) void begin(number);
  expect(begun).toEqual([1, 2]);
  await nextTurn();
  void begin(6);
  expect(begun).toEqual([1, 2, 3, 4]);
  await nextTurn();
  expect(begun).toEqual([1, 2, 3, 4, 5, 6]);
  void begin(7);
  expect(begun).toHaveLength(6);
  await nextTurn();
  await nextTurn();
  expect([begun, turns]).toEqual([[1, 2, 3, 4, 5, 6, 7], []]);
  void begin(8);
  expect(begun).toHaveLength(8);
});

test.each(["127.0.0.1", "foreign.example"])(
  "a connection that sends thousands of requests ahead to %s is closed, and others are answered",
  async (host) => {
    const listener = listen({
      hostname: "127.0.0.1",
      port: 0,
      publicUrl: null,
      trustProxy: false,
      openFiles: null,
      log: pino({ enabled: false }),
    });
    const most = Promise.withResolvers<void>();
    listener.answerWith(() => new Response("well"));
    let received = "";
    const socket = connect(Number(new URL(listener.url).port), "127.0.0.1", () => {
      socket.write(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(5_000));
    });
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      received += text;
    });
    socket.on("error", () => {});
    socket.on("close", () => most.resolve());
    const well = await fetch(listener.url);
    expect(await well.text()).toBe("well");
    await most.promise;
    expect(received.split("HTTP/1.1 ").length - 1).toBeLessThan(5_000);
    await listener.stop();
  },
);
