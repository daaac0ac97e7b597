import type { Transporter } from "nodemailer";
import { createLimiter } from "../lib/concurrency.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import { type Mail, MailError, type MailMessage } from "./message.ts";
import { parseSmtpUrl, SMTP_URL_FORM, type SmtpServer } from "./smtp-url.ts";

/** In milliseconds. `total` limits a whole mail, whatever the server does meanwhile. */
export interface SmtpDeadlines {
  connect: number;
  greeting: number;
  socket: number;
  total: number;
}

const { deadlineMs, answerBytes, connections } = OUTGOING.mail;
const DEADLINES: SmtpDeadlines = { connect: 10_000, greeting: 10_000, socket: deadlineMs, total: deadlineMs };

const LATE = Object.assign(new Error("late"), { code: "ETIMEDOUT" });

/** Sends mail by SMTP, one connection per mail. Throws at once if the URL or sender cannot work. */
export function createSmtp(smtpUrl: string, from: string | null, deadlines: Partial<SmtpDeadlines>): Mail {
  const server = parseSmtpUrl(smtpUrl);
  if (server === null) throw new Error(`ROOST_SMTP_URL: expected ${SMTP_URL_FORM}`);
  if (from === null || /\p{Cc}/u.test(from)) {
    throw new Error("ROOST_MAIL_FROM: expected the sender's e-mail address, because ROOST_SMTP_URL is set");
  }
  const { connect, greeting, socket, total } = { ...DEADLINES, ...deadlines };
  let opened: Promise<Transporter> | undefined;
  const open = async (): Promise<Transporter> => {
    // Loaded with the first mail, to keep the start fast.
    const { createTransport } = await import("nodemailer");
    return createTransport({
      host: server.host,
      port: server.port,
      secure: server.secure,
      ...(server.auth && { auth: server.auth }),
      // A password never leaves the machine unencrypted. On loopback nobody can listen in, and no certificate could
      // match.
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
  const inNoticesLane = createLimiter(connections / 2);
  /** Whoever waits for a code stands before a screen: notices leave half of the connections. */
  const inOwnLane = <T>(code: MailMessage["code"], work: () => Promise<T>): Promise<T> =>
    code ? inLane(work) : inNoticesLane(() => inLane(work));

  return {
    async send({ to, subject, text, code }: MailMessage) {
      // The time spent waiting for a lane counts too: a stalled server delays nobody for longer than this.
      const signal = AbortSignal.timeout(total);
      try {
        await inOwnLane(code, async () => {
          if (signal.aborted) throw LATE;
          await (await transporter()).sendMail({ from, to: { name: "", address: to }, subject, text, signal });
        });
      } catch (error) {
        throw new MailError(explain(server, error, code), outcomeOf(error));
      }
    },
    async check() {
      const { promise: late, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(() => reject(LATE), total);
      try {
        await Promise.race([(await transporter()).verify(), late]);
        return {
          ok: true,
          detail: `the mail server ${server.name} answers${server.auth ? " and accepts the user" : ""}`,
        };
      } catch (error) {
        return { ok: false, detail: explain(server, error, null) };
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

const NO_TLS = "offers no trusted TLS: its certificate must match its name, and a password requires TLS";

/** What went wrong, with the mail's code and the password removed in case the server repeats them. */
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

function outcomeOf(error: unknown): MailError["outcome"] {
  const { code, command, permanent, timeoutType } = error as Record<string, unknown>;
  if (code === "EENVELOPE" && command === "RCPT TO" && permanent === true) return "recipient refused";
  // Later than the greeting, a server that is slow is mostly so with a mail that it has.
  const isLate = code === "EABORT" || code === "ABORT_ERR" || timeoutType === "SOCKET_TIMEOUT";
  return isLate ? "unknown" : "not sent";
}

function reason(code: unknown, message: string): string {
  if (/certificate|self.signed/i.test(message)) return NO_TLS;
  switch (code) {
    case "EAUTH":
    case "ENOAUTH":
      return "does not accept the user or password of ROOST_SMTP_URL";
    case "EENVELOPE":
      return "rejects the sender or the recipient";
    case "ETLS":
      return NO_TLS;
    case "EDNS":
      return "was not found in DNS";
    case "ECONNECTION":
    case "ESOCKET":
      return "cannot be reached";
    case "ETIMEDOUT":
    case "EABORT":
    case "ABORT_ERR":
      return "did not answer in time";
    default:
      return "did not accept the mail";
  }
}
