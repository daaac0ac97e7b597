/**
 * Parses server-sent events as model servers write them: takes text cut anywhere, and passes on each event's data.
 * Lines end in LF or CRLF; several `data` lines of one event are joined by LF; comments and other fields are dropped.
 * `maxLength` bounds one line and one event's data, in UTF-16 units.
 */
export interface SseLines {
  push(text: string): void;
  /** Ends the text. An event without its closing blank line still counts. */
  end(): void;
}

export function createSseLines(maxLength: number, onData: (data: string) => void, onTooLong: () => never): SseLines {
  let carry = "";
  let data: string | null = null;

  const dispatch = () => {
    if (data === null) return;
    const complete = data;
    data = null;
    onData(complete);
  };

  const readLine = (raw: string) => {
    if (raw.length > maxLength) onTooLong();
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    if (line === "") dispatch();
    else if (line.startsWith("data:")) add(line.slice(line.startsWith(" ", 5) ? 6 : 5));
    // llama.cpp reports a failure in mid-stream as a field of its own.
    else if (line.startsWith("error:")) add(`{"error":${line.slice(6)}}`);
  };

  const add = (value: string) => {
    data = data === null ? value : `${data}\n${value}`;
    if (data.length > maxLength) onTooLong();
  };

  return {
    push(text) {
      let start = 0;
      for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
        // Pieces are joined only when the line is complete, so that a line in many small pieces takes linear time.
        readLine(carry === "" ? text.slice(start, end) : carry + text.slice(start, end));
        carry = "";
        start = end + 1;
      }
      if (start < text.length) carry += start === 0 ? text : text.slice(start);
      if (carry.length > maxLength) onTooLong();
    },
    end() {
      const last = carry;
      carry = "";
      readLine(last);
      dispatch();
    },
  };
}
