import { z } from "zod";
import type { Egress } from "../egress/egress.ts";
import { EgressError } from "../egress/refusal.ts";
import { isSentOn, type PreparedMessage } from "../egress/request.ts";
import { shownHost, type Target } from "../egress/target.ts";
import { isTooDeep } from "../lib/json-depth.ts";
import { cutMark, describeBinary, shownStatus, textOf } from "./answer-text.ts";
import { MAX_PAGE_TEXT } from "./page/page.ts";
import { PLACEHOLDER_START, type Place, type SecretBroker } from "./secret-broker.ts";
import type { Tool } from "./tool.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;
const MAX_HEADERS = 50;
const MAX_BODY = 1024 * 1024;
/** Of the answer's headers. */
const MAX_HEADER_TEXT = 8_000;

const input = z.lazy(() =>
  z.object({
    method: z.enum(METHODS),
    url: z.string().max(8_192).describe("in full, with https://"),
    headers: z
      .record(z.string().max(200), z.string().max(16_384))
      .refine((headers) => Object.keys(headers).length <= MAX_HEADERS, {
        error: `expected at most ${MAX_HEADERS} headers`,
      })
      .optional(),
    body: z
      .union([z.string().max(MAX_BODY), z.record(z.string(), z.unknown()), z.array(z.unknown())])
      .describe("text; an object or a list is sent as JSON")
      .optional(),
  }),
);
type Input = z.output<typeof input>;

const notDeclared = (target: Target): string =>
  `http_request may not reach ${shownHost(target)}: no installed skill declares it (metadata.requires-hosts), nor does the ` +
  "operator name it in ROOST_EGRESS; web_fetch reads public pages";

export interface HttpRequestParts {
  egress: Pick<Egress, "send" | "policy">;
  broker: SecretBroker;
  accountOf(instanceId: string): string;
}

/** Requests to the hosts that skills and the operator name (docs/contract/runtime.md, Tools). */
export const createHttpRequest = ({ egress, broker, accountOf }: HttpRequestParts): Tool<typeof input> => ({
  name: "http_request",
  description:
    "Sends an HTTP request to a host that an installed skill declares. Write {{secret:NAME}} in a header, the query or " +
    "the body where the value of a secret belongs.",
  input,
  deadlineMs: 60_000,
  changes: "outside",
  changesOf: ({ method }) => (method === "GET" || method === "HEAD" ? "nothing" : "outside"),
  untrustedOutput: true,
  async run(asked, { instanceId, runId, signal }) {
    const answer = await egress.send({
      url: asked.url,
      accountId: accountOf(instanceId),
      instanceId,
      runId,
      signal,
      requireAllowed(target) {
        if (broker.declares(instanceId, target) || egress.policy.names(target)) return;
        throw new EgressError("policy", notDeclared(target));
      },
      prepare: (target) => prepare(broker, instanceId, target, asked),
    });
    const shown = textOf(answer);
    const headerText = answer.headers.map(([name, value]) => `${name}: ${value}`).join("\n");
    const text = shown.kind === "binary" ? describeBinary(shown.type, answer.body) : shown.text;
    // A cut may split the value of a secret, which would not be found in what is left.
    const cut = async (long: string, most: number) =>
      long.length <= most
        ? long
        : (await broker.redact(instanceId, long, most)).slice(0, most).toWellFormed() + cutMark(long);
    return [
      `Status: ${shownStatus(answer.status)}`,
      `URL: ${answer.url}`,
      await cut(headerText, MAX_HEADER_TEXT),
      "",
      answer.body.length === 0 ? "[no body]" : await cut(text, MAX_PAGE_TEXT),
    ].join("\n");
  },
});

/** The request as it leaves, with the values of its secrets. Throws `EgressError`. */
async function prepare(
  broker: SecretBroker,
  instanceId: string,
  target: Target,
  { method, headers: asked = {}, body }: Input,
): Promise<PreparedMessage> {
  const { headers, text, place } = contentOf(asked, body);
  requireOwnPlaces([...Object.keys(headers), target.url.pathname]);
  for (const [name, value] of Object.entries(headers)) {
    if (isSentOn(name) && hasPlaceholder(value))
      throw new EgressError(
        "secret",
        `a secret cannot stand in ${name}: that header is sent on where a redirect leads`,
      );
  }
  const names = Object.keys(headers);
  const [search = "", content = "", ...values] = await broker.fill(instanceId, target, [
    ["query", target.url.search],
    [place, text ?? ""],
    ...Object.values(headers).map((value): [Place, string] => ["header", value]),
  ]);
  return {
    method,
    headers: Object.fromEntries(names.map((name, at) => [name, values[at] ?? ""])),
    body: text === null ? null : Buffer.from(content),
    search,
  };
}

/** The body's text, where its secrets stand, and the headers with its type. */
function contentOf(headers: Record<string, string>, body: Input["body"]) {
  if (body === undefined) return { headers, text: null, place: "text" as const };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const [, declared] = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-type") ?? [];
  const type = declared?.toLowerCase() ?? (isJson(text) ? "application/json" : "text/plain; charset=utf-8");
  const place: Place = /\bjson\b/.test(type) ? "json" : type.includes("x-www-form-urlencoded") ? "form" : "text";
  return { headers: declared === undefined ? { ...headers, "Content-Type": type } : headers, text, place };
}

function isJson(text: string): boolean {
  try {
    return !isTooDeep(text) && typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

const hasPlaceholder = (text: string): boolean => text.search(PLACEHOLDER_START) >= 0;

function requireOwnPlaces(texts: string[]): void {
  if (!texts.some(hasPlaceholder)) return;
  throw new EgressError("secret", "a secret stands in a header's value, the query or the body: nowhere else");
}
