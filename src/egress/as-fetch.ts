import { streamOf } from "../lib/stream-of.ts";
import type { Egress } from "./egress.ts";

/** `fetch` for libraries and streams, without redirects: what is asked for leaves as a request of this instance. */
export type GuardedFetch = (url: string | URL, init?: RequestInit, runId?: string) => Promise<Response>;

const MAX_STATUS = 599;

/** Throws `EgressError`; the signal ends the answer's stream too. */
export function asFetch(egress: Pick<Egress, "open">, whose: { accountId: string; instanceId: string }): GuardedFetch {
  return async (url, init = {}, runId) => {
    const request = new Request(url, init);
    const body = request.body === null ? null : await request.bytes();
    // The guard writes its own: compression would hold back what is streamed.
    request.headers.delete("Accept-Encoding");
    const message = { method: request.method, headers: Object.fromEntries(request.headers), body, uncompressed: true };
    const signal = init.signal ?? new AbortController().signal;
    const answer = await egress.open({ ...whose, runId, url: request.url, message, signal });
    // A status that HTTP does not have counts as a failure of its server (RFC 9110, 15), and fits in no `Response`.
    const status = Math.min(answer.status, MAX_STATUS);
    return new Response(streamOf(answer.body), { status, headers: answer.headers });
  };
}
