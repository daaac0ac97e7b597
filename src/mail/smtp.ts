import type { Transporter } from "nodemailer";
import { createLimiter } from "../lib/concurrency.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import type { Mail, MailMessage } from "./mail.ts";

/** In milliseconds. `total` holds for a whole mail, whatever the server does meanwhile. */
export interface SmtpDeadlines {
  connect: number;
  greeting: number;
  socket: number;
  total: number;
}

const { deadlineMs, answerBytes, connections } = OUTGOING.mail;
const DEADLINES: SmtpDeadlines = { connect: 10_000, greeting: 10_000, socket: deadlineMs, total: deadlineMs };

const LATE = Object.assign(new Error("late"), { code: "ETIMEDOUT" });

/** Mail by SMTP, one connection a mail. Throws at once for a URL or sender that cannot work. */
export function createSmtp(smtpUrl: string, from: string | null, deadlines: Partial<SmtpDeadlines>): Mail {
  const server = parseSmtpUrl(smtpUrl);
  if (from === null || /\p{Cc}/u.test(from)) {
    throw new Error("ROOST_MAIL_FROM: expected the sender's e-mail address, because ROOST_SMTP_URL is set");
  }
  const { connect, greeting, socket, total } = { ...DEADLINES, ...deadlines };
  let opened: Promise<Transporter> | undefined;
  const open = async (): Promise<Transporter> => {
    // Loaded with the first mail: a start has no use for it.
    const { createTransport } = await import("nodemailer");
    return createTransport({
      host: server.host,
      port: server.port,
      secure: server.secure,
      ...(server.auth && { auth: server.auth }),
      // A password never leaves the machine in the clear; on loopback nobody listens, and certificates name nobody.
      requireTLS: server.auth !== null && !server.loopback,
      tls: { rejectUnauthorized: !server.loopback },
      connectionTimeout: connect,
      greetingTimeout: greeting,
      socketTimeout: socket,
      dnsTimeout: connect,
      maxResponseSize: answerBytes,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  };
  const transporter = (): Promise<Transporter> => {
    opened ??= open();
    return opened;
  };

  const inLane = createLimiter(connections);

  return {
    async send({ to, subject, text, code }: MailMessage) {
      // Its time runs while it waits for a lane too: a server that stalls holds up nobody for longer than that.
      const signal = AbortSignal.timeout(total);
      try {
        await inLane(async () => {
          if (signal.aborted) throw LATE;
          await (await transporter()).sendMail({ from, to: { name: "", address: to }, subject, text, signal });
        });
      } catch (error) {
        throw new Error(explain(server, error, code));
      }
    },
    async check() {
      const { promise: late, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(() => reject(LATE), total);
      try {
        await Promise.race([(await transporter()).verify(), late]);
        return {
          ok: true,
          detail: `the mail server ${server.name} answers${server.auth ? " and knows the user" : ""}`,
        };
      } catch (error) {
        return { ok: false, detail: explain(server, error, null) };
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

interface SmtpServer {
  /** Host and port, fit to show. */
  name: string;
  host: string;
  port: number;
  secure: boolean;
  loopback: boolean;
  auth: { user: string; pass: string } | null;
}

function parseSmtpUrl(smtpUrl: string): SmtpServer {
  try {
    const url = new URL(smtpUrl);
    const secure = url.protocol === "smtps:";
    if (!secure && url.protocol !== "smtp:") throw new Error("another scheme");
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (host === "") throw new Error("no host");
    const port = Number(url.port) || (secure ? 465 : 587);
    const user = decodeURIComponent(url.username);
    const auth = user === "" ? null : { user, pass: decodeURIComponent(url.password) };
    const loopback = host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
    return { name: `${url.hostname}:${port}`, host, port, secure, loopback, auth };
  } catch {
    // The parser's own words repeat the URL, password and all.
    throw new Error(
      "ROOST_SMTP_URL: expected smtp://user:pass@host:587 or smtps://…, with user and password percent-encoded",
    );
  }
}

const NO_TLS = "offers no TLS that can be trusted: its certificate must name it, and a password needs TLS";

/** What went wrong and what to do, without the code of the mail or the password, should the server repeat them. */
function explain(server: SmtpServer, error: unknown, secret: string | null | undefined): string {
  const { code, message, response } = error as { code?: unknown; message?: unknown; response?: unknown };
  let said = typeof response === "string" ? response : "";
  for (const hidden of [secret, server.auth?.pass]) if (hidden) said = said.replaceAll(hidden, "…");
  said = said
    .replace(/[\s\p{C}]+/gu, " ")
    .trim()
    .slice(0, 300);
  return `the mail server ${server.name} ${reason(code, String(message))}${said === "" ? "" : `: ${said}`}`;
}

function reason(code: unknown, message: string): string {
  if (/certificate|self.signed/i.test(message)) return NO_TLS;
  switch (code) {
    case "EAUTH":
    case "ENOAUTH":
      return "does not accept the user or password of ROOST_SMTP_URL";
    case "EENVELOPE":
      return "refuses the sender or the recipient";
    case "ETLS":
      return NO_TLS;
    case "EDNS":
      return "is not known to DNS";
    case "ECONNECTION":
    case "ESOCKET":
      return "cannot be reached";
    case "ETIMEDOUT":
    case "EABORT":
    case "ABORT_ERR":
      return "did not answer in time";
    default:
      return "did not take the mail";
  }
}
