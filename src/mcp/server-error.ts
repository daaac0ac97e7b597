/**
 * `authorization`: somebody has to authorize this instance at the server, or a secret is missing. `refused`: the server has
 * not done what it was asked. `session`: nor that, maybe because it has forgotten this client. `unknown`: it may have done it or not.
 * `unreachable`: it was not asked. `busy`: nor was it tried.
 */
export type ServerFault = "authorization" | "refused" | "session" | "unknown" | "unreachable" | "busy";

/** What a server's owner does next. */
export const AUTHORIZE_AGAIN = "authorize it again (roost mcp authorize INSTANCE NAME)";

/** Why a server could not be asked, or what it made of it. The message may repeat what the server said. */
export class ServerError extends Error {
  readonly fault: ServerFault;
  constructor(fault: ServerFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ServerError";
    this.fault = fault;
  }
}

/** What a server has said, on one line and short. */
export const said = (text: unknown, most = 300): string =>
  (typeof text === "string" ? text : "")
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, most)
    .toWellFormed();
