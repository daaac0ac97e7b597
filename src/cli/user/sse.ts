/** One server-sent event; `id` is null if the stream has sent none. */
export interface ServerEvent {
  id: string | null;
  data: string;
}

/** In UTF-16 units: far longer than any event of Roost's. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;

/**
 * The events of a `text/event-stream` body as they arrive. Throws if the server is silent for `silenceMs` (it pings
 * every 15 s); ends when the body ends. Leaving the loop closes the connection.
 */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let id: string | null = null;
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await within(silenceMs, reader.read());
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > MAX_EVENT_LENGTH) throw new Error("an event is too long");
      for (const raw of lines) {
        const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
        if (line === "" && data.length > 0) {
          yield { id, data: data.join("\n") };
          data = [];
        } else if (line.startsWith("data:")) data.push(line.slice(line.startsWith(" ", 5) ? 6 : 5));
        else if (line.startsWith("id:")) id = line.slice(3).trim();
      }
    }
  } finally {
    // Not awaited: a stuck connection would keep the command from ending.
    void reader.cancel().catch(() => undefined);
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no data for ${ms / 1000} s`)), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
