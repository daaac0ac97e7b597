import { createSmtp, type SmtpDeadlines } from "./smtp.ts";

export interface MailMessage {
  to: string;
  subject: string;
  text: string;
  /** The sign-in code within: kept beside the text in the outbox, and out of every error. */
  code?: string | null;
}

export interface Mail {
  /** Resolves when the mail is handed over. Throws an Error whose message is for logs and operators, without secrets. */
  send(message: MailMessage): Promise<void>;
  /** Whether mail would go out now, and what is wrong otherwise. */
  check(): Promise<{ ok: boolean; detail: string }>;
}

export interface MailSettings {
  /** `smtp://user:pass@host:587` or `smtps://…`, user and password percent-encoded; null keeps mail in the outbox. */
  smtpUrl: string | null;
  from: string | null;
}

// One mailbox and nothing else: neither a second recipient nor a second header line fits in.
const MAILBOX = /^[^\s<>()[\]\\,;:"@\p{C}]{1,64}@[^\s<>()[\]\\,;:"@\p{C}]{1,255}$/u;

/** The way out for mail. Throws when the settings cannot work. */
export function createMail(
  { smtpUrl, from }: MailSettings,
  outbox: { append(message: MailMessage): void },
  deadlines: Partial<SmtpDeadlines> = {},
): Mail {
  const smtp = smtpUrl === null ? null : createSmtp(smtpUrl, from, deadlines);
  return {
    async send(message) {
      if (!MAILBOX.test(message.to)) throw new Error("the recipient is not one e-mail address");
      if (/\p{Cc}/u.test(message.subject)) throw new Error("the subject holds control characters");
      if (smtp === null) outbox.append(message);
      else await smtp.send(message);
    },
    check: async () =>
      smtp === null
        ? { ok: true, detail: "no SMTP server is set: mail is kept in the outbox, see `roost outbox`" }
        : await smtp.check(),
  };
}
