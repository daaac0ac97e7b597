/**
 * A collector of traces: takes OTLP over HTTP as it stands on the wire, and decodes it by the protocol's own field numbers
 * (opentelemetry/proto/trace/v1), without the library that has written it.
 */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  /** Empty for a root. */
  parentSpanId: string;
  name: string;
  /** 1 internal, 2 server, 3 client. */
  kind: number;
  attributes: Record<string, unknown>;
  links: { traceId: string; spanId: string }[];
  /** 2 is an error. */
  status: number;
  schemaUrl: string;
  resource: Record<string, unknown>;
}

export interface OtlpReceiver {
  url: string;
  spans: ReceivedSpan[];
  /** Everything that has arrived, as text. */
  raw: string[];
  headers: Headers[];
  /** Resolves with all spans when one fits. */
  until(fits: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan[]>;
  /** How the next requests are answered: a status, or never. */
  answerWith(status: number | "never"): void;
  stop(): Promise<void>;
}

export function startOtlpReceiver(): OtlpReceiver {
  const spans: ReceivedSpan[] = [];
  const raw: string[] = [];
  const headers: Headers[] = [];
  const waiting: { fits: (span: ReceivedSpan) => boolean; resolve: (all: ReceivedSpan[]) => void }[] = [];
  let answer: number | "never" = 200;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      if (answer === "never") return new Promise<Response>(() => {});
      if (answer !== 200) return new Response("no", { status: answer });
      if (new URL(request.url).pathname !== "/v1/traces") return new Response("no such path", { status: 404 });
      headers.push(request.headers);
      const bytes = await request.bytes();
      raw.push(Buffer.from(bytes).toString("latin1"));
      spans.push(...decode(bytes));
      for (const one of waiting.splice(0)) if (!tell(one)) waiting.push(one);
      return new Response(new Uint8Array(), { headers: { "Content-Type": "application/x-protobuf" } });
    },
  });
  function tell({ fits, resolve }: (typeof waiting)[number]): boolean {
    if (!spans.some(fits)) return false;
    resolve(spans);
    return true;
  }
  return {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    raw,
    headers,
    until: (fits) =>
      new Promise((resolve) => {
        const one = { fits, resolve };
        if (!tell(one)) waiting.push(one);
      }),
    answerWith(next) {
      answer = next;
    },
    stop: () => server.stop(true),
  };
}

/** The values of each field of a message, in their order: numbers, or bytes. */
function fieldsOf(bytes: Uint8Array): (field: number) => (bigint | Uint8Array)[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = new Map<number, (bigint | Uint8Array)[]>();
  let at = 0;
  const varint = () => {
    let [value, shift] = [0n, 0n];
    for (;;) {
      const byte = BigInt(view.getUint8(at++));
      value |= (byte & 0x7fn) << shift;
      if (byte < 0x80n) return value;
      shift += 7n;
    }
  };
  const take = (length: number) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  const readers: Record<number, () => bigint | Uint8Array> = {
    ...{ 0: varint, 1: () => take(8), 2: () => take(Number(varint())), 5: () => take(4) },
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const value = readers[key & 7]?.();
    if (value === undefined) throw new Error(`wire type ${key & 7}`);
    found.set(key >> 3, [...(found.get(key >> 3) ?? []), value]);
  }
  return (field) => found.get(field) ?? [];
}

const messages = (bytes: Uint8Array, field: number) => fieldsOf(bytes)(field) as Uint8Array[];
const hex = (value: unknown) => (value === undefined ? "" : Buffer.from(value as Uint8Array).toString("hex"));
const text = (value: unknown) => (value === undefined ? "" : Buffer.from(value as Uint8Array).toString());

function decode(bytes: Uint8Array): ReceivedSpan[] {
  return messages(bytes, 1).flatMap((ofResource) => {
    const resource = attributesOf(messages(messages(ofResource, 1)[0] ?? new Uint8Array(), 1));
    return messages(ofResource, 2).flatMap((ofScope) => {
      const schemaUrl = text(fieldsOf(ofScope)(3)[0]);
      return messages(ofScope, 2).map((span) => spanOf(span, schemaUrl, resource));
    });
  });
}

function spanOf(bytes: Uint8Array, schemaUrl: string, resource: Record<string, unknown>): ReceivedSpan {
  const field = fieldsOf(bytes);
  const status = field(15)[0];
  return {
    traceId: hex(field(1)[0]),
    spanId: hex(field(2)[0]),
    parentSpanId: hex(field(4)[0]),
    name: text(field(5)[0]),
    kind: Number(field(6)[0]),
    attributes: attributesOf(field(9) as Uint8Array[]),
    links: field(13).map((link) => {
      const of = fieldsOf(link as Uint8Array);
      return { traceId: hex(of(1)[0]), spanId: hex(of(2)[0]) };
    }),
    status: status === undefined ? 0 : Number(fieldsOf(status as Uint8Array)(3)[0] ?? 0n),
    schemaUrl,
    resource,
  };
}

const attributesOf = (pairs: readonly Uint8Array[]): Record<string, unknown> =>
  Object.fromEntries(
    pairs.map((pair) => {
      const field = fieldsOf(pair);
      return [text(field(1)[0]), anyValue(field(2)[0] as Uint8Array)];
    }),
  );

function anyValue(bytes: Uint8Array): unknown {
  const field = fieldsOf(bytes);
  if (field(1)[0] !== undefined) return text(field(1)[0]);
  if (field(2)[0] !== undefined) return field(2)[0] === 1n;
  if (field(3)[0] !== undefined) return Number(field(3)[0]);
  if (field(4)[0] !== undefined) return Buffer.from(field(4)[0] as Uint8Array).readDoubleLE();
  if (field(5)[0] !== undefined) return messages(field(5)[0] as Uint8Array, 1).map(anyValue);
  return "";
}
