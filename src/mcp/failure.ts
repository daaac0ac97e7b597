import {
  InsufficientScopeError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from "@modelcontextprotocol/client";
import { EgressError, type EgressFault } from "../egress/refusal.ts";
import { messageOf } from "../lib/message-of.ts";
import { AUTHORIZE_AGAIN, ServerError, said } from "./server-error.ts";

/** Faults before anything has reached the server. */
const NOT_SENT: ReadonlySet<EgressFault> = new Set(["url", "policy", "address", "dns", "connect", "tls", "busy"]);

/** As an error of JSON-RPC: what a request without an answer gets. */
export const STREAM_ENDED = -32_099;

/** Reads what the client, or the way to the server, has thrown. */
export function failureOf(thrown: unknown): ServerError {
  const failed = (fault: ServerError["fault"], message: string) => new ServerError(fault, message, { cause: thrown });
  const known = causeOf(thrown, ServerError);
  if (known !== undefined) return known;
  const egress = causeOf(thrown, EgressError);
  if (egress !== undefined) {
    if (egress.fault === "secret") return failed("authorization", egress.message);
    return failed(NOT_SENT.has(egress.fault) ? "unreachable" : "unknown", egress.message);
  }
  const scope = causeOf(thrown, InsufficientScopeError);
  if (scope !== undefined) {
    const wanted = said(scope.requiredScope, 200);
    return failed(
      "authorization",
      `it wants a token for more${wanted && ` (${wanted})`}: ${AUTHORIZE_AGAIN}, or give it such a token in a header`,
    );
  }
  const http = causeOf(thrown, SdkHttpError);
  if (http !== undefined) {
    const { status } = http;
    if (status === 401) return failed("authorization", "it answered 401: authorize it, or give it a token in a header");
    const message = `it answered ${status}: ${said(http.data.text) || "no text"}`;
    return failed(status === 404 || status === 400 ? "session" : status >= 500 ? "unknown" : "refused", message);
  }
  if (thrown instanceof ProtocolError) {
    return failed(thrown.code === STREAM_ENDED ? "unknown" : "refused", said(thrown.message));
  }
  if (thrown instanceof SdkError && thrown.code === SdkErrorCode.RequestTimeout) {
    return failed("unknown", "it did not answer in time");
  }
  return failed("unknown", said(messageOf(thrown)));
}

/** The error itself, or what has caused it. */
function causeOf<E extends Error>(thrown: unknown, kind: new (...args: never[]) => E): E | undefined {
  for (let error = thrown; error instanceof Error; error = error.cause) if (error instanceof kind) return error;
  return undefined;
}
