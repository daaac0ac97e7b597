/**
 * How deep JSON may be nested that strangers write. Nobody needs so much; JavaScriptCore takes half a minute to write again
 * what is 50,000 levels deep (measured), and SQLite takes no more than 1,000.
 */
export const MAX_JSON_DEPTH = 200;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** The text's length if there is none. */
function indexIn(text: string, part: string, from: number): number {
  const at = text.indexOf(part, from);
  return at < 0 ? text.length : at;
}

/** Whether a text, if it is JSON, is nested deeper than that. Takes as long as it has characters. */
export const isTooDeep = (json: string, most = MAX_JSON_DEPTH): boolean =>
  json.length > most && isTooComplex(json, most, Number.POSITIVE_INFINITY);

/**
 * The same, also for more than so many objects and lists, values in all, or escapes in texts: their number is what reading
 * and checking them takes.
 */
export function isTooComplex(
  json: string,
  most: number,
  mostParts: number,
  mostValues = Number.POSITIVE_INFINITY,
  mostEscapes = Number.POSITIVE_INFINITY,
): boolean {
  let depth = 0;
  let parts = 0;
  let values = 0;
  let escapes = 0;
  /** Where the next backslash is, once looked for. */
  let backslash = -1;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      at++;
      // Most of a text needs no look: that of an image is long.
      if (backslash < at) backslash = indexIn(json, "\\", at);
      at = Math.min(backslash, indexIn(json, '"', at));
      for (let end = json.charCodeAt(at); at < json.length && end !== QUOTE; end = json.charCodeAt(++at)) {
        if (end !== BACKSLASH) continue;
        at++;
        if (++escapes > mostEscapes) return true;
      }
    } else if (code === 0x5b || code === 0x7b) {
      if (++depth > most || ++parts > mostParts || ++values > mostValues) return true;
    } else if (code === COMMA) {
      if (++values > mostValues) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}
