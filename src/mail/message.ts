export interface MailMessage {
  to: string;
  subject: string;
  text: string;
  /** The sign-in code in the text: stored separately in the outbox, and kept out of errors. */
  code?: string | null;
}

export interface Mail {
  /** Resolves when the mail is handed over. Throws an Error whose message is safe for logs and operators. */
  send(message: MailMessage): Promise<void>;
  /** Whether mail can be sent now, and if not, why. */
  check(): Promise<{ ok: boolean; detail: string }>;
}
