/**
 * `authorization`: somebody has to authorize this instance at the server, or a secret is missing. `refused`: the server has
 * not done what it was asked. `session`: nor that, maybe because it has forgotten this client. `unknown`: it may have done it or not.
 * `unreachable`: it was not asked. `busy`: nor was it tried.
 */
export type ServerFault = "authorization" | "refused" | "session" | "unknown" | "unreachable" | "busy";

/** What a server's owner does next: whoever shows it, in the console or on a terminal, says how. */
export const AUTHORIZE_AGAIN = "authorize it again";

/** Why a server could not be asked, or what it made of it. The message may repeat what the server said. */
export class ServerError extends Error {
  readonly fault: ServerFault;
  constructor(fault: ServerFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ServerError";
    this.fault = fault;
  }
}

/** Far more of what a server has said than is shown: first, the values of secrets are taken out. */
const MAX_SAID = 20_000;
/** Of an error, as a model is told of it. */
export const MAX_TOLD = 4_000;

/** What a server has said, on one line, with a mark where it is cut. */
export function said(text: unknown, most = MAX_SAID): string {
  const line = (typeof text === "string" ? text : "").replaceAll(/[\s\p{Cc}]+/gu, " ").trim();
  return line.length <= most ? line.toWellFormed() : `${line.slice(0, most - 1).toWellFormed()}…`;
}
