import { type Logger, pino } from "pino";

export type Log = Logger;

/** The server's log, on standard output. Never log secrets: no codes, tokens, keys or message text. */
export async function createLog(level: string, format: "pretty" | "json"): Promise<Log> {
  const options = { level, base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  if (format === "json") {
    return pino(
      { ...options, formatters: { level: (label) => ({ level: label }) } },
      pino.destination({ dest: 1, sync: true }),
    );
  }
  // Loaded only when needed: it would slow down a start with JSON logs.
  const { default: pretty } = await import("pino-pretty");
  const colorize = !process.env.NO_COLOR && process.stdout.isTTY;
  return pino(options, pretty({ colorize, ignore: "pid,hostname", translateTime: "HH:MM:ss", sync: true }));
}
