/** A text as C reads it. Hold it until whoever was given its address has read it. */
export const cString = (text: string): Buffer => Buffer.from(`${text}\0`);
