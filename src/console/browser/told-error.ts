import { RoostError } from "../../../clients/typescript/src/index.ts";

/** An error in words for a person, with what can be done about it. */
export class ToldError extends Error {
  constructor(
    message: string,
    readonly nextStep: string,
  ) {
    super(message);
  }
}

/** Whether the server did not answer: what was wrong is over once it does. */
export const isAway = (error: unknown): boolean =>
  error instanceof RoostError && ["unreachable", "timeout", "disconnected"].includes(error.code);

/** What a person is told about an error. */
export function toldError(error: unknown): ToldError {
  if (error instanceof ToldError) return error;
  if (!(error instanceof RoostError)) return new ToldError("this page has failed", `Reload it. (${String(error)})`);
  if (isAway(error)) return new ToldError("the server does not answer", "Check that it is running, then try again.");
  const { code, requestId } = error;
  const message = plainly(error.message);
  switch (code) {
    case "payment_required":
      return new ToldError(message, "Ask the operator of this host for credit, or top up under Account.");
    case "not_found":
      return new ToldError(message, "It may have been removed meanwhile. Reload the page to see what there is.");
    case "unauthorized":
      return new ToldError(
        "your session has ended",
        "What is written here is still here: sign in in another tab, then try again.",
      );
    case "rate_limited":
      return new ToldError(message, "Wait a moment, then try again.");
    case "instance_not_ready":
      // Why, where that is known, stands beside the instance.
      return message.startsWith("the instance is stopped")
        ? new ToldError("the instance is stopped", "Start it, then try again.")
        : new ToldError(message, "");
    case "model_error":
      return new ToldError(message, "On the host, roost doctor shows what is wrong with the model.");
    case "internal_error":
      return new ToldError(message, `The host's log has the details under request ${requestId ?? ""}.`);
    default:
      return new ToldError(message, "");
  }
}

/** Without the API's names for what a person did not name, and with many bytes as a person counts them. */
const plainly = (message: string): string =>
  message
    .replace(/^(body|slug|file|path\.\w+): /, "")
    .replace(/(\d{6,}) bytes/, (_, count: string) => sizeOf(Number(count)));

const sizeOf = (bytes: number): string =>
  bytes < 1024 ** 2 ? `${Math.floor(bytes / 1024)} KiB` : `${Math.floor(bytes / 1024 ** 2)} MiB`;
