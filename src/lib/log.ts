import { type LogFn, type Logger, pino, stdSerializers } from "pino";

export type Log = Logger;

/** Kept in memory of what cannot be written. */
const MAX_UNWRITTEN_BYTES = 1024 * 1024;

/**
 * The server's log, on standard output. Calls never throw: what cannot be written, such as on a full disk, is written
 * before the next line that can be. Never log secrets: no codes, tokens, keys or message text.
 */
export async function createLog(level: string, format: "pretty" | "json"): Promise<Log> {
  const serializers = { err: tellError };
  const options = { level, base: null, serializers, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  const output = pino.destination({ dest: 1, sync: true, maxLength: MAX_UNWRITTEN_BYTES });
  // Without a listener of our own, the line's caller would get the error.
  output.on("error", () => undefined);
  if (format === "json") return pino({ ...options, formatters: { level: (label) => ({ level: label }) } }, output);
  // Loaded only when needed: it would slow down a start with JSON logs.
  const { prettyFactory } = await import("pino-pretty");
  const onTerminal = process.stdout.isTTY;
  const colorize = !process.env.NO_COLOR && onTerminal;
  const pretty = prettyFactory({ colorize, ignore: "pid,hostname,event", singleLine: true, translateTime: "HH:MM:ss" });
  return pino(onTerminal ? { ...options, hooks: { logMethod: withoutRecords } } : options, {
    write: (line) => void output.write(pretty(line)),
  });
}

/** Events that are for records, which a terminal keeps none of: a hash says nothing to who reads along. */
const RECORDS = new Set<unknown>(["audit_checkpoint"]);

/** Leaves out what is for records, except where the level is `debug`. */
function withoutRecords(this: Log, args: Parameters<LogFn>, write: LogFn): void {
  const [about] = args as unknown[];
  const isRecord = typeof about === "object" && about !== null && "event" in about && RECORDS.has(about.event);
  if (!isRecord || this.isLevelEnabled("debug")) write.apply(this, args);
}

/** Without the constants that every DOMException inherits, such as a call's that was too late. */
const tellError = (error: Error) =>
  error instanceof DOMException
    ? { type: error.name, message: error.message, stack: error.stack }
    : stdSerializers.err(error);
