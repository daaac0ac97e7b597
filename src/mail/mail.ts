import { type Mail, MailError, type MailMessage } from "./message.ts";
import { createSmtp, type SmtpDeadlines } from "./smtp.ts";

export interface MailSettings {
  /** `smtp://user:pass@host:587` or `smtps://…`, user and password percent-encoded; null keeps mail in the outbox. */
  smtpUrl: string | null;
  from: string | null;
}

// Exactly one mailbox, so that nobody can add a recipient or a header line.
const MAILBOX = /^[^\s<>()[\]\\,;:"@\p{C}]{1,64}@[^\s<>()[\]\\,;:"@\p{C}]{1,255}$/u;

/** Sends mail by SMTP, or keeps it in the outbox. Throws if the settings cannot work. */
export function createMail(
  { smtpUrl, from }: MailSettings,
  outbox: { append(message: MailMessage): void },
  deadlines: Partial<SmtpDeadlines> = {},
): Mail {
  const smtp = smtpUrl === null ? null : createSmtp(smtpUrl, from, deadlines);
  return {
    async send(message) {
      if (!MAILBOX.test(message.to)) throw new MailError("the recipient is not one e-mail address", "not sent");
      if (/\p{Cc}/u.test(message.subject)) throw new MailError("the subject contains control characters", "not sent");
      if (smtp === null) outbox.append(message);
      else await smtp.send(message);
    },
    check: async () =>
      smtp === null
        ? { ok: true, detail: "no SMTP server is set: mail is kept, see `roost outbox`" }
        : await smtp.check(),
  };
}
