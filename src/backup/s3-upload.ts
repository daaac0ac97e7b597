import { AwsClient } from "aws4fetch";
import type { S3Client } from "bun";
import { readBoundedText } from "../lib/bounded-text.ts";
import { waitFor } from "../lib/wait-for.ts";
import { OUTGOING } from "../limits/outgoing.ts";

/** S3 takes at most 10,000 parts: with this size a file may have 156 GiB. */
const PART_BYTES = 16 * 1024 * 1024;
const ATTEMPTS = 4;
/** How long parts may take to be given back: half of what a server has to stop. */
const GIVE_BACK_MS = 5_000;

type Method = "POST" | "PUT" | "DELETE";

/** An error that a server has answered with, such as `SlowDown`. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    answer: string,
  ) {
    const [, code = `status ${status}`] = /<Code>([^<]{1,100})<\/Code>/.exec(answer) ?? [];
    const [, words] = /<Message>([^<]{1,500})<\/Message>/.exec(answer) ?? [];
    super(words === undefined ? code : `${code}: ${words}`);
  }
}

/**
 * Uploads a file, whole or not at all, and returns its size in bytes. Throws the signal's reason if it aborts, what
 * `beforeItAppears` throws once all of it is there, or what failed. Bun's client uploads too, but while a server hangs, nothing ends that and its parts stay.
 *
 * @see https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html
 */
export async function uploadToS3(
  client: S3Client,
  key: string,
  content: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  beforeItAppears: () => Promise<void>,
): Promise<number> {
  const request = requestsFor(client, key);
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  const upload = fieldOf("UploadId", (await request("POST", "?uploads=", ended)).answer);
  const etags: string[] = [];
  const sending = new Set<Promise<void>>();
  const query = (number: number) => `?partNumber=${number}&uploadId=${encodeURIComponent(upload)}`;
  let size = 0;

  async function send(number: number, part: Uint8Array<ArrayBuffer>): Promise<void> {
    try {
      const { etag } = await request("PUT", query(number), ended, part);
      etags[number - 1] = etag;
    } catch (error) {
      failed.abort(error);
    }
  }

  try {
    let number = 0;
    for await (const part of partsOf(content)) {
      ended.throwIfAborted();
      size += part.length;
      number += 1;
      const sent = send(number, part).finally(() => sending.delete(sent));
      sending.add(sent);
      if (sending.size >= OUTGOING.s3.connections) await Promise.race(sending);
    }
    await Promise.all(sending);
    ended.throwIfAborted();
    await beforeItAppears();
    const list = etags.map((etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${etag}</ETag></Part>`);
    const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
    const complete = `?uploadId=${encodeURIComponent(upload)}`;
    await request("POST", complete, ended, new TextEncoder().encode(body));
    return size;
  } catch (error) {
    failed.abort(error);
    // A part that arrives after the others were given back would stay.
    await Promise.all(sending);
    const inTime = AbortSignal.timeout(GIVE_BACK_MS);
    await request("DELETE", `?uploadId=${encodeURIComponent(upload)}`, inTime).catch(() => {});
    throw error;
  }
}

/** Parts of `PART_BYTES`; the last one is shorter, and the only one may be empty. */
async function* partsOf(content: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let part = new Uint8Array(PART_BYTES);
  let filled = 0;
  let given = false;
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length; ) {
      const taken = chunk.subarray(at, at + PART_BYTES - filled);
      part.set(taken, filled);
      filled += taken.length;
      at += taken.length;
      if (filled < PART_BYTES) continue;
      yield part;
      part = new Uint8Array(PART_BYTES);
      filled = 0;
      given = true;
    }
  }
  if (filled > 0 || !given) yield part.subarray(0, filled);
}

/** Signed requests for one file. What the server or the network fails at for a moment is tried again. */
function requestsFor(client: S3Client, key: string) {
  // Bun reads the endpoint, the region and the keys from the environment, and says them here.
  const url = new URL(client.presign(key));
  const [accessKeyId = "", , region = ""] = (url.searchParams.get("X-Amz-Credential") ?? "").split("/");
  const sessionToken = url.searchParams.get("X-Amz-Security-Token");
  const { S3_SECRET_ACCESS_KEY, AWS_SECRET_ACCESS_KEY } = process.env;
  const signer = new AwsClient({
    accessKeyId,
    secretAccessKey: S3_SECRET_ACCESS_KEY ?? AWS_SECRET_ACCESS_KEY ?? "",
    ...(sessionToken === null ? {} : { sessionToken }),
    service: "s3",
    region,
  });

  async function once(method: Method, query: string, signal: AbortSignal, body?: Uint8Array<ArrayBuffer>) {
    const request = await signer.sign(`${url.origin}${url.pathname}${query}`, {
      method,
      ...(body === undefined ? {} : { body }),
    });
    const inTime = AbortSignal.timeout(body === undefined ? OUTGOING.s3.deadlineMs : OUTGOING.s3.partMs);
    const response = await fetch(request, { redirect: "manual", signal: AbortSignal.any([signal, inTime]) });
    const answer = await readBoundedText(response, OUTGOING.s3.answerBytes);
    // The last request of an upload may fail with status 200.
    if (!response.ok || answer.includes("<Error>")) throw new Refusal(response.status, answer);
    return { answer, etag: response.headers.get("etag") ?? "" };
  }

  return async (method: Method, query: string, signal: AbortSignal, body?: Uint8Array<ArrayBuffer>) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once(method, query, signal, body);
      } catch (error) {
        const isFinal = error instanceof Refusal && error.status >= 400 && error.status < 500 && error.status !== 429;
        if (signal.aborted || isFinal || attempt === ATTEMPTS) throw signal.aborted ? signal.reason : error;
      }
      await waitFor(200 * 4 ** (attempt - 1), signal);
    }
  };
}

function fieldOf(name: string, answer: string): string {
  const [, value] = new RegExp(`<${name}>([^<]+)</${name}>`).exec(answer) ?? [];
  if (value === undefined) throw new Error(`the server answered without ${name}`);
  return value;
}
