/** What a terminal obeys, what reverses the direction of text, and what nobody sees. */
const UNSEEN = /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

/** JSON in which everything is to be seen: what has no shape of its own is escaped. */
export const visibleJson = (value: unknown, indent?: number): string =>
  (JSON.stringify(value, null, indent) ?? "null").replaceAll(
    UNSEEN,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
