import { type Logger, pino } from "pino";
import pretty from "pino-pretty";

export type Log = Logger;

/** The appliance's log on standard output. Nothing secret is given to it: no codes, tokens, keys or message text. */
export function createLog(level: string, format: "pretty" | "json"): Log {
  const options = { level, base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  if (format === "json")
    return pino(
      { ...options, formatters: { level: (label) => ({ level: label }) } },
      pino.destination({ dest: 1, sync: true }),
    );
  const stream = pretty({
    colorize: process.env.NO_COLOR === undefined && process.stdout.isTTY,
    ignore: "pid,hostname",
    translateTime: "HH:MM:ss",
    sync: true,
  });
  return pino(options, stream);
}
