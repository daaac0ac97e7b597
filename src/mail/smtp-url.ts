import { isLoopbackName } from "../lib/loopback.ts";
export interface SmtpServer {
  /** Host and port, safe to show. */
  name: string;
  host: string;
  port: number;
  secure: boolean;
  loopback: boolean;
  auth: { user: string; pass: string } | null;
}

export const SMTP_URL_FORM = "smtp://user:pass@host:587 or smtps://…, with user and password percent-encoded";

/** Null unless it is in `SMTP_URL_FORM`; user, password and port may be absent. */
export function parseSmtpUrl(smtpUrl: string): SmtpServer | null {
  try {
    const url = new URL(smtpUrl);
    const secure = url.protocol === "smtps:";
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if ((!secure && url.protocol !== "smtp:") || host === "") return null;
    const port = Number(url.port) || (secure ? 465 : 587);
    const user = decodeURIComponent(url.username);
    const auth = user === "" ? null : { user, pass: decodeURIComponent(url.password) };
    const loopback = isLoopbackName(url.hostname);
    return { name: `${url.hostname}:${port}`, host, port, secure, loopback, auth };
  } catch {
    return null;
  }
}
