/** A label is one line without control characters: SQLite counts text up to a NUL, and terminals interpret them. */
export const isLabel = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text);
