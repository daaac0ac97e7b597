/**
 * An authorization that cannot go on. Its message is for the server's owner. Neither it nor a cause has any text of another
 * server: that might repeat a code or a token, or ask for something.
 */
export class AuthorizationError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AuthorizationError";
  }
}
