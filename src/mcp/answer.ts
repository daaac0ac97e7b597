import { isDeepStrictEqual } from "node:util";
import { isObject } from "../lib/is-object.ts";
import { withoutEnd } from "../lib/without-end.ts";

type Unread = Readonly<Record<string, unknown>>;

/** What a tool has answered, in text: what is not text, or not as it should be, is only said to be there. */
export function textOfAnswer({ content, structuredContent }: Unread): string {
  const blocks = (Array.isArray(content) ? content : []).filter(isObject);
  const parts = blocks.map(textOf);
  // Servers mostly repeat it as text.
  const isTold = structuredContent == null || blocks.some(({ text }) => isJsonOf(text, structuredContent));
  if (!isTold) parts.push(JSON.stringify(structuredContent));
  return parts.join("\n\n") || "[the tool has answered nothing]";
}

function isJsonOf(text: unknown, value: unknown): boolean {
  try {
    return typeof text === "string" && isDeepStrictEqual(JSON.parse(text), value);
  } catch {
    return false;
  }
}

function textOf({ type, text, data, mimeType, uri, name, resource }: Unread): string {
  if (type === "text" && typeof text === "string") return text;
  if ((type === "image" || type === "audio") && typeof data === "string") {
    return `[${type} of ${wordOf(mimeType)}, ${bytesOf(data)} bytes: not shown]`;
  }
  if (type === "resource_link") return `[link to the resource ${wordOf(uri)}${name ? ` (${wordOf(name)})` : ""}]`;
  if (type === "resource" && isObject(resource)) {
    const { uri, text, blob, mimeType = "application/octet-stream" } = resource;
    if (typeof text === "string") return `[the resource ${wordOf(uri)}]\n${text}`;
    if (typeof blob === "string") {
      return `[the resource ${wordOf(uri)}: ${bytesOf(blob)} bytes of ${wordOf(mimeType)}, not shown]`;
    }
  }
  return `[${wordOf(type)}: not shown]`;
}

const wordOf = (value: unknown): string => (typeof value === "string" ? value : "unknown");

/** Of what base64 stands for. */
const bytesOf = (base64: string): number => Math.floor((withoutEnd(base64, "=").length * 3) / 4);
