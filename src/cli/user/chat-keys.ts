/** A key with a meaning of its own. */
export type KeyName =
  | "enter"
  | "line break"
  | "interrupt"
  | "suspend"
  | "end of input"
  | "redraw"
  | "left"
  | "right"
  | "up"
  | "down"
  | "home"
  | "end"
  | "word left"
  | "word right"
  | "backspace"
  | "delete"
  | "delete word before"
  | "delete word after"
  | "delete all before"
  | "delete all after"
  | "put back";

export type Key = { kind: "named"; name: KeyName } | { kind: "text" | "paste"; text: string };

const PASTE_STARTS = "\u001b[200~";
const PASTE_ENDS = "\u001b[201~";
const INTERRUPT = "\u0003";

/** A whole key of several characters; the second bracket is of the Linux console's F1 to F5. */
const SEQUENCE = /^(?:\r\n|\u001b(?:\[\[?[0-?]*[ -/]*[@-~]|O[ -~]|[^\u0000-\u0007\u0009-\u000c\u000e-\u001f[O]))/u;
/** The beginning of one, whose rest is still to come. */
const UNFINISHED = /^\u001b(?:\[\[?[0-?]*[ -/]*|O)?$/;
const TEXT = /^[^\u0000-\u001f\u007f]+|^\t/;

const NAMES: ReadonlyMap<string, KeyName> = new Map<string, KeyName>([
  ["\r", "enter"],
  ["\r\n", "enter"],
  ["\n", "enter"],
  ["\u001b\r", "line break"],
  ["\u0001", "home"],
  ["\u0002", "left"],
  [INTERRUPT, "interrupt"],
  ["\u0004", "end of input"],
  ["\u0005", "end"],
  ["\u0006", "right"],
  ["\u0008", "backspace"],
  ["\u000b", "delete all after"],
  ["\u000c", "redraw"],
  ["\u000e", "down"],
  ["\u0010", "up"],
  ["\u0015", "delete all before"],
  ["\u0017", "delete word before"],
  ["\u0019", "put back"],
  ["\u001a", "suspend"],
  ["\u007f", "backspace"],
  ["\u001bb", "word left"],
  ["\u001bf", "word right"],
  ["\u001bd", "delete word after"],
  ["\u001b\u0008", "delete word before"],
  ["\u001b\u007f", "delete word before"],
  ["\u001b[3~", "delete"],
  ["\u001b[1~", "home"],
  ["\u001b[7~", "home"],
  ["\u001b[4~", "end"],
  ["\u001b[8~", "end"],
]);

/** Arrows, Home and End, whichever form the terminal gives them; with Ctrl or Alt, the arrows go by words. */
const CURSOR_KEY = /^\u001b(?:O|\[(?:1;(\d+))?)([ABCDHF])$/;
const CURSOR_KEYS: Record<string, KeyName> = { A: "up", B: "down", C: "right", D: "left", H: "home", F: "end" };
const SHIFT = "2";

function nameOf(sequence: string): KeyName | undefined {
  const [, modifier = SHIFT, letter = ""] = CURSOR_KEY.exec(sequence) ?? [];
  if (modifier !== SHIFT && letter === "C") return "word right";
  if (modifier !== SHIFT && letter === "D") return "word left";
  return CURSOR_KEYS[letter] ?? NAMES.get(sequence);
}

export interface KeyReader {
  /** The keys that end with this piece of input. */
  read(bytes: Uint8Array): Key[];
  /** Whether a key has begun whose rest has not come. */
  isInKey(): boolean;
  /** Gives such a key up: it was Escape alone. */
  endKey(): void;
}

/**
 * Tells the keys in a terminal's input, which comes in pieces of any length. What the terminal marks as pasted is one key,
 * once all of it has come, whatever it contains. Keys without a meaning here are left out.
 */
export function createKeyReader(): KeyReader {
  const decoder = new TextDecoder();
  let rest = "";
  let isPasting = false;

  /** The next key, taken from the rest; undefined for one without a meaning. Null if the rest holds no whole key. */
  function next(): Key | undefined | null {
    if (isPasting) {
      const end = rest.indexOf(PASTE_ENDS);
      if (end < 0) return null;
      isPasting = false;
      const text = rest.slice(0, end);
      rest = rest.slice(end + PASTE_ENDS.length);
      return { kind: "paste", text };
    }
    if (rest === "" || UNFINISHED.test(rest)) return null;
    const text = TEXT.exec(rest)?.[0];
    const sequence = text ?? SEQUENCE.exec(rest)?.[0] ?? rest.slice(0, 1);
    rest = rest.slice(sequence.length);
    if (text !== undefined) return { kind: "text", text };
    if (sequence === PASTE_STARTS) {
      isPasting = true;
      return undefined;
    }
    const name = nameOf(sequence);
    if (name !== undefined) return { kind: "named", name };
    // Escape pressed before a letter: nobody loses the letter.
    const letter = /^\u001b([^\u0000-\u001f\u007f[O])$/u.exec(sequence)?.[1];
    return letter === undefined ? undefined : { kind: "text", text: letter };
  }

  return {
    read(bytes) {
      const piece = decoder.decode(bytes, { stream: true });
      // Alone, it was pressed: the end of the paste got lost.
      if (isPasting && piece === INTERRUPT) {
        isPasting = false;
        rest = "";
      }
      rest += piece;
      const keys: Key[] = [];
      for (let key = next(); key !== null; key = next()) if (key !== undefined) keys.push(key);
      return keys;
    },
    isInKey: () => rest !== "" && !isPasting,
    endKey() {
      if (!isPasting) rest = "";
    },
  };
}
