import { expect, test } from "bun:test";
import { readServerEvents, type ServerEvent } from "../../clients/typescript/src/server-events.ts";

const streamOf = (chunks: Uint8Array[], end = true) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      if (end) controller.close();
    },
  });

async function read(body: ReadableStream<Uint8Array>, silenceMs = 5000): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of readServerEvents(body, silenceMs)) events.push(event);
  return events;
}

const TEXT =
  'retry: 2000\n\n: ping\n\nid: 1\nevent: a\ndata: {"é":"日本"}\n\nid: 2\r\ndata: x\r\ndata:y\r\n\r\ndata: cut off';

test("events are read however the network splits them; an unfinished one is ignored", async () => {
  const bytes = new TextEncoder().encode(TEXT);
  const expected = [{ data: '{"é":"日本"}' }, { data: "x\ny" }];
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const chunks = [];
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.slice(at, at + size));
    expect(await read(streamOf(chunks))).toEqual(expected);
  }
});

test("silence is an error", async () => {
  await expect(read(streamOf([new TextEncoder().encode(": ping\n\n")], false), 20)).rejects.toThrow("no data for");
});

test("leaving the loop closes the connection", async () => {
  const closed = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("data: 1\n\n")),
    cancel: () => closed.resolve(),
  });
  for await (const _ of readServerEvents(body, 5000)) break;
  await closed.promise;
});
