/** One server-sent event. */
export interface ServerEvent {
  data: string;
}

/** In UTF-16 units: far longer than any event of Roost's. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024;

/**
 * The events of a `text/event-stream` body as they arrive. Throws if the server is silent for `silenceMs` (it pings
 * every 15 s); ends when the body ends. Leaving the loop closes the connection. `onRetry` is told how many milliseconds
 * the server wants a client to wait before it connects again.
 */
export async function* readServerEvents(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
  onRetry: (ms: number) => void = () => undefined,
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
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
          yield { data: data.join("\n") };
          data = [];
        } else if (line.startsWith("data:")) data.push(line.slice(line.startsWith(" ", 5) ? 6 : 5));
        else if (/^retry: ?\d{1,6}$/.test(line)) onRetry(Number(line.slice(6)));
      }
    }
  } finally {
    // Not awaited: a stuck connection would keep the program from ending.
    reader.cancel().catch(() => undefined);
  }
}

function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no data for ${ms / 1000} s`)), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
