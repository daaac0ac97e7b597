/** An answer that exceeds its bound. */
export class AnswerTooLong extends Error {
  override readonly name = "AnswerTooLong";
}

/** Reads the body of an answer as text. Throws `AnswerTooLong` after `maxBytes`, leaving the rest unread. */
export async function readBoundedText(answer: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new AnswerTooLong(`the answer has more than ${maxBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
