import { type LogFn, type Logger, type LoggerOptions, pino, stdSerializers } from "pino";
import SonicBoom from "sonic-boom";

export type Log = Logger;

/** Kept in memory of what cannot be written; what comes then is dropped. */
const MAX_UNWRITTEN_BYTES = 1024 * 1024;
/** As long as an end waits for whoever reads the log. */
const END_MS = 1_000;

/**
 * The server's log, on standard output. Calls never throw, and never wait for whoever reads it, such as a pager or a terminal
 * that is held: what cannot be written is written later, or before the next line that can be, as after a full disk. Never
 * log secrets: no codes, tokens, keys or message text.
 */
export async function createLog(level: string, format: "pretty" | "json"): Promise<Log> {
  const serializers = { err: tellError };
  const options = { level, base: null, serializers, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  const output = createOutput((lines) =>
    log.warn({ lines }, "lines of this log were dropped: they could not be written in time"),
  );
  const json = { ...options, formatters: { level: (label: string) => ({ level: label }) } };
  const log = format === "json" ? pino(json, output) : await createPretty(options, output);
  return log;
}

async function createPretty(options: LoggerOptions, output: Output): Promise<Log> {
  // Loaded only when needed: it would slow down a start with JSON logs.
  const { prettyFactory } = await import("pino-pretty");
  const onTerminal = process.stdout.isTTY;
  const colorize = !process.env.NO_COLOR && onTerminal;
  const translateTime = "UTC:HH:MM:ss'Z'";
  const pretty = prettyFactory({ colorize, ignore: "pid,hostname,event", singleLine: true, translateTime });
  return pino(onTerminal ? { ...options, hooks: { logMethod: withoutRecords } } : options, {
    ...output,
    write: (line) => output.write(pretty(line)),
  });
}

/** Resolves once everything is written that was logged, or a second later: nobody may be reading it. */
export const logWritten = (log: Log): Promise<void> =>
  new Promise((resolve) => {
    log.flush(() => resolve());
    setTimeout(resolve, END_MS);
  });

/** What pino writes to. */
interface Output {
  write(line: string): void;
  flush(then: () => void): void;
}

/** Calls `tellDropped` with how many lines it had no room for, once it has room again. */
function createOutput(tellDropped: (lines: number) => void): Output {
  // Not pino.destination, which at an exit waits for the reader.
  const output = new SonicBoom({ fd: 1, maxLength: MAX_UNWRITTEN_BYTES });
  // Without a listener of our own, an error would end the process.
  output.on("error", () => undefined);
  let isWritten = true;
  let dropped = 0;
  output.on("drop", () => dropped++);
  output.on("drain", () => {
    isWritten = true;
    const lines = dropped;
    dropped = 0;
    if (lines > 0) tellDropped(lines);
  });
  return {
    write(line) {
      isWritten = false;
      output.write(line);
    },
    flush(then) {
      if (isWritten) then();
      else output.once("drain", then);
    },
  };
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
