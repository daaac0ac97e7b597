/** An answer that is longer than it may be. */
export class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";
}

/** The body of an answer as text. Throws `AnswerTooLong`, and leaves the rest unread, where it has more than `mostBytes`. */
export async function readBoundedText(answer: Response, mostBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > mostBytes) throw new AnswerTooLong(`the answer has more than ${mostBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
