export interface MailMessage {
  to: string;
  subject: string;
  text: string;
  /** The sign-in code in the text: stored separately in the outbox, and kept out of errors. */
  code?: string | null;
}

/** A mail that was not handed over, with a message that is safe for logs and operators. */
export class MailError extends Error {
  constructor(
    message: string,
    /** `unknown` if the server has not said in time that it takes the mail: it may arrive all the same. */
    readonly outcome: "not sent" | "recipient refused" | "unknown",
  ) {
    super(message);
  }
}

export interface Mail {
  /** Resolves when the mail is handed over. Throws a `MailError`. */
  send(message: MailMessage): Promise<void>;
  /** Whether mail can be sent now, and if not, why. */
  check(): Promise<{ ok: boolean; detail: string }>;
}
