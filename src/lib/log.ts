import { type Logger, pino, stdSerializers } from "pino";

export type Log = Logger;

/** The server's log, on standard output. Never log secrets: no codes, tokens, keys or message text. */
export async function createLog(level: string, format: "pretty" | "json"): Promise<Log> {
  const serializers = { err: tellError };
  const options = { level, base: null, serializers, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  if (format === "json") {
    return pino(
      { ...options, formatters: { level: (label) => ({ level: label }) } },
      pino.destination({ dest: 1, sync: true }),
    );
  }
  // Loaded only when needed: it would slow down a start with JSON logs.
  const { default: pretty } = await import("pino-pretty");
  const colorize = !process.env.NO_COLOR && process.stdout.isTTY;
  return pino(
    options,
    pretty({ colorize, ignore: "pid,hostname,event", singleLine: true, translateTime: "HH:MM:ss", sync: true }),
  );
}

/** Without the constants that every DOMException inherits, such as a call's that was too late. */
const tellError = (error: Error) =>
  error instanceof DOMException
    ? { type: error.name, message: error.message, stack: error.stack }
    : stdSerializers.err(error);
