import type { Egress } from "../../egress/egress.ts";
import { EgressError } from "../../egress/refusal.ts";
import { shownHost } from "../../egress/target.ts";
import { isTooComplex, MAX_JSON_DEPTH } from "../../lib/json-depth.ts";

/** Metadata and tokens are a few kilobytes. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** An error is kept for each that is wrong: those of a hundred thousand would hold everybody up for seconds. */
const MAX_VALUES = 5_000;
const BODILESS = new Set([204, 205, 304]);

export type OAuthFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * `fetch` for the requests of an authorization, as those of the instance: through the guard, in the account's places, within
 * its deadline. Follows no redirect, not even one of the same origin: tokens and codes go where the metadata says, or
 * nowhere. Only hosts that the operator names may be asked without encryption. Throws `EgressError`.
 */
export function oauthFetch(
  egress: Pick<Egress, "send" | "policy">,
  whose: { accountId: string; instanceId: string },
  end: AbortSignal,
): OAuthFetch {
  return async (url, init = {}) => {
    const request = new Request(url, init);
    const body = request.body === null ? null : await request.bytes();
    const message = { method: request.method, headers: Object.fromEntries(request.headers), body };
    let isRedirected = false;
    const answer = await egress.send({
      ...whose,
      url: request.url,
      message,
      signal: end,
      requireAllowed(target) {
        if (isRedirected) throw new EgressError("redirect", "its answer is a redirect, which is not followed");
        isRedirected = true;
        if (!target.secure && !egress.policy.names(target)) {
          const host = shownHost(target);
          throw new EgressError("policy", `${host} is not asked without encryption, unless ROOST_EGRESS names it`);
        }
      },
    });
    if (answer.body.byteLength > MAX_ANSWER_BYTES) {
      throw new EgressError("size", `its answer is longer than ${MAX_ANSWER_BYTES / 1024} KiB`);
    }
    const text = answer.body.toString();
    // A page is no metadata, whatever is in it.
    if (/^\s*[[{]/.test(text) && isTooComplex(text, MAX_JSON_DEPTH, MAX_VALUES, MAX_VALUES)) {
      throw new EgressError("protocol", `its answer has more than ${MAX_VALUES} values, or is nested too deep`);
    }
    const content = BODILESS.has(answer.status) ? null : new Uint8Array(answer.body);
    return new Response(content, { status: answer.status, headers: answer.headers });
  };
}
