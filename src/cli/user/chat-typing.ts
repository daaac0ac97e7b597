import { CLEAR_SCREEN, markPastes, stream, terminalColumns, watchSize } from "../output.ts";
import { createKeyReader, type KeyName } from "./chat-keys.ts";
import { createChatLine } from "./chat-line.ts";
import { openChatScreen } from "./chat-screen.ts";

/** An interrupt drops what is in the line; `isEmpty` if nothing was. */
export type Typed = { kind: "text"; text: string } | { kind: "interrupt"; isEmpty: boolean } | { kind: "end" };

/** An escape sequence comes in one piece, or soon: after this long, it was the key Escape. */
const ESCAPE_MS = 500;
/** By then a program that has stopped itself is stopped. */
const SUSPENDED_MS = 50;

/** What a person types in a chat. */
export interface Typing {
  /** Reads the next message, with editing and history; one that was sent during the answer before comes at once. */
  read(): Promise<Typed>;
  /** Keeps what is typed while this goes on, without showing it. Ctrl-C is a signal. */
  keepDuring<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Puts what was sent since into the line, for the person to look at before it is sent; behind `first`, if given. */
  holdBack(first?: string): void;
  /** Asks, and reads the answer of somebody who has seen the question. */
  confirm(question: string): Promise<boolean>;
}

/**
 * The terminal is in raw mode only while one of these is under way. (Readline, also Node's, knows nothing of pastes, and
 * draws a message again in the wrong row when a long piece of it has come at once.)
 */
export function openTyping(prompt: string, history: () => readonly string[]): Typing {
  const keys = createKeyReader();
  const line = createChatLine(history);
  const screen = openChatScreen(prompt);
  const waiting: Typed[] = [];
  /** Takes what `read` returns; null while it is not called. */
  let settle: ((typed: Typed) => void) | null = null;
  let isAnswering = false;
  /** Whether the terminal has marked what was pasted: then lines that come together were typed fast. */
  let marksPastes = false;
  let escaping: ReturnType<typeof setTimeout> | undefined;

  function add(typed: Typed): void {
    if (settle === null) waiting.push(typed);
    else settle(typed);
  }

  /** One piece of input. On a terminal that does not mark what is pasted, several lines in it are one message. */
  function take(bytes: Uint8Array): void {
    let lineBreaks = 0;
    let isSent = false;
    function send(): void {
      if (isSent) add({ kind: "text", text: line.take() });
      lineBreaks = 0;
      isSent = false;
    }
    clearTimeout(escaping);
    const read = keys.read(bytes);
    if (keys.isInKey()) escaping = setTimeout(keys.endKey, ESCAPE_MS);
    for (const key of read) {
      if (key.kind === "named" && key.name === "enter") {
        lineBreaks++;
        isSent = true;
        if (marksPastes) send();
        continue;
      }
      const control = key.kind === "named" ? controls[key.name] : undefined;
      if (control !== undefined) {
        send();
        control();
        continue;
      }
      if (lineBreaks > 0) line.insert(line.take() + "\n".repeat(lineBreaks));
      lineBreaks = 0;
      marksPastes ||= key.kind === "paste";
      if (key.kind === "named") line.press(key.name);
      else line.insert(key.text);
    }
    send();
    // Suspended, it says nothing.
    if (settle !== null && unlisten !== deaf) screen.show(line.text, line.cursor);
  }

  function interrupt(): void {
    // During an answer, whoever waits for it has the signal.
    if (!isAnswering) add({ kind: "interrupt", isEmpty: line.text === "" });
  }

  const controls: Partial<Record<KeyName, () => void>> = {
    interrupt: () => (isAnswering ? process.kill(process.pid, "SIGINT") : interrupt()),
    "end of input"() {
      if (line.text === "") add({ kind: "end" });
      else line.press("delete");
    },
    redraw() {
      if (settle === null) return;
      stream(CLEAR_SCREEN);
      screen.showAgain(line.text, line.cursor);
    },
    suspend() {
      if (settle !== null) leave(line.text);
      stopListening();
      process.kill(process.pid, "SIGTSTP");
      // Once it is continued; at once where nobody controls jobs, and nothing was stopped.
      setTimeout(() => {
        if (settle !== null || isAnswering) listen();
        if (settle !== null) screen.show(line.text, line.cursor);
      }, SUSPENDED_MS);
    },
  };

  function leave(text: string): void {
    screen.leave(text);
    stream("\n");
  }

  const deaf = () => {};
  let unlisten = deaf;
  function stopListening(): void {
    unlisten();
    unlisten = deaf;
  }
  function listen(): void {
    stopListening();
    unlisten = listenTo({
      take,
      interrupt,
      end: () => add({ kind: "end" }),
      showAgain: () => void (settle !== null && screen.showAgain(line.text, line.cursor)),
    });
  }

  const typing: Typing = {
    read() {
      const [sent] = waiting.splice(0, 1);
      if (sent !== undefined) {
        leave(sent.kind === "text" ? sent.text : "");
        return Promise.resolve(sent);
      }
      return new Promise((resolve) => {
        settle = (typed) => {
          settle = null;
          stopListening();
          leave(typed.kind === "text" ? typed.text : line.take());
          resolve(typed);
        };
        listen();
        screen.show(line.text, line.cursor);
      });
    },
    async keepDuring(work) {
      isAnswering = true;
      listen();
      try {
        return await work();
      } finally {
        isAnswering = false;
        stopListening();
      }
    },
    holdBack(first = "") {
      const sent = waiting.splice(0);
      waiting.push(...sent.filter(({ kind }) => kind !== "text"));
      const texts = sent.map((typed) => (typed.kind === "text" ? typed.text : ""));
      line.insert([first, ...texts, line.take()].filter((text) => text !== "").join("\n"));
    },
    async confirm(question) {
      typing.holdBack();
      const kept = line.take();
      stream(`${question} [y/N]\n`);
      const typed = await typing.read();
      if (typed.kind === "end") waiting.push(typed);
      const isYes = typed.kind === "text" && /^\s*y(es)?\s*$/i.test(typed.text);
      if (typed.kind === "text" && !isYes && !/^\s*(no?)?\s*$/i.test(typed.text)) typing.holdBack(typed.text);
      typing.holdBack(kept);
      return isYes;
    },
  };
  return typing;
}

interface Listener {
  take(bytes: Uint8Array): void;
  interrupt(): void;
  end(): void;
  /** What is shown may have changed: the window's size, or all that is in it. */
  showAgain(): void;
}

const ENDINGS = ["SIGTERM", "SIGHUP"] as const;
/** As shells name the end by SIGHUP. */
const HUNG_UP = 128 + 1;

/**
 * Listens to the terminal, key by key and without echo, until what is returned is called. The terminal is as it was
 * afterwards, however the program ends.
 */
function listenTo({ take, interrupt, end, showAgain }: Listener): () => void {
  const { stdin } = process;
  const knowsSequences = terminalColumns() !== null;
  const unwatchSize = watchSize(showAgain);
  function begin(): void {
    stdin.setRawMode(true);
    if (knowsSequences) stream(markPastes(true));
  }
  /** After a stop that it had no word of, a shell has given the terminal a mode of its own. */
  function goOn(): void {
    stdin.setRawMode(false);
    begin();
    showAgain();
  }
  function stop(): void {
    process.off("exit", stopAtExit).off("SIGINT", interrupt).off("SIGCONT", goOn);
    for (const signal of ENDINGS) process.off(signal, endBy);
    unwatchSize();
    stdin.off("data", take).off("end", end).pause();
    try {
      stdin.setRawMode(false);
    } catch {
      // The terminal has gone, and whoever sat before it: its input ends then, before the signal comes.
      process.exit(HUNG_UP);
    }
    if (knowsSequences) stream(markPastes(false));
  }
  function stopAtExit(): void {
    try {
      stop();
    } catch {
      // The terminal has gone.
    }
  }
  function endBy(signal: NodeJS.Signals): void {
    stopAtExit();
    process.kill(process.pid, signal);
  }
  process.on("exit", stopAtExit).on("SIGINT", interrupt).on("SIGCONT", goOn);
  for (const signal of ENDINGS) process.on(signal, endBy);
  begin();
  stdin.on("data", take).on("end", end).resume();
  return stop;
}
