import { z } from "zod";
import { HEADER_NAME } from "../egress/head.ts";
import type { EgressPolicy } from "../egress/policy.ts";
import { EgressError } from "../egress/refusal.ts";
import { targetOf } from "../egress/target.ts";
import { AppError } from "../lib/app-error.ts";
import { PLACEHOLDER, PLACEHOLDER_START } from "../tools/secret-broker.ts";

const NAME = "1 to 31 of a-z, 0-9 and hyphens, not beginning with a hyphen";
const MAX_URL = 2_000;
const MAX_HEADERS = 20;
const MAX_VALUE = 2_000;
const HEADERS = `an object of at most ${MAX_HEADERS} headers, each with its value`;
const VALUE = `one line of at most ${MAX_VALUE} ASCII characters; a secret is written {{secret:NAME}}`;

/** What the host and the protocol say themselves. */
const OWN_HEADERS =
  /^(?:host|connection|content-.*|transfer-encoding|accept.*|upgrade|te|trailer|keep-alive|expect|proxy-.*|cookie2?|origin|referer|forwarded|x-forwarded-.*|via|last-event-id|mcp-.*|traceparent|tracestate|baggage|__proto__)$/i;

export const serverName = z
  .string({ error: NAME })
  .regex(/^[a-z0-9][a-z0-9-]{0,30}$/, { error: NAME })
  .meta({ examples: ["docs"] });

export const serverUrl = z
  .string({ error: "a URL" })
  .max(MAX_URL, { error: `a URL of at most ${MAX_URL} characters` })
  .meta({ examples: ["https://mcp.example.com/mcp"] });

const headerValue = z
  .string({ error: VALUE })
  .max(MAX_VALUE, { error: VALUE })
  .regex(/^[\x20-\x7e]*$/, { error: VALUE })
  .meta({ examples: ["Bearer {{secret:DOCS_TOKEN}}"] });

export const serverHeaders = z
  .record(z.string(), headerValue, { error: HEADERS })
  .refine((headers) => Object.keys(headers).length <= MAX_HEADERS, { error: HEADERS })
  .meta({ examples: [{ Authorization: "Bearer {{secret:DOCS_TOKEN}}" }] });

const refused = (expected: string) => new AppError("invalid_request", expected);

/** Throws `invalid_request` for what is no address of a server that this host lets agents reach. */
export function requireServerUrl(url: string, policy: Pick<EgressPolicy, "names">): void {
  try {
    const target = targetOf(url);
    if (!target.secure && !policy.names(target)) {
      throw refused("url: expected https; http only to a host that the operator names in ROOST_EGRESS");
    }
  } catch (error) {
    if (error instanceof EgressError) throw refused(`url: ${error.message}`);
    throw error;
  }
}

/** Throws `invalid_request` for headers that are the host's own business, and for mistakes in placeholders. */
export function requireServerHeaders(headers: Readonly<Record<string, string>>): void {
  const names = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    const shown = JSON.stringify(name.slice(0, 50));
    if (!HEADER_NAME.test(name) || name.length > 100) throw refused(`headers: ${shown} is not a header's name`);
    if (OWN_HEADERS.test(name)) throw refused(`headers: ${shown} is set by the host: leave it out`);
    if (names.has(name.toLowerCase())) throw refused(`headers: ${shown} is there twice`);
    names.add(name.toLowerCase());
    if ([...value.matchAll(PLACEHOLDER_START)].length !== [...value.matchAll(PLACEHOLDER)].length) {
      throw refused(`headers: expected placeholders of the form {{secret:NAME}} in ${shown}`);
    }
  }
}
