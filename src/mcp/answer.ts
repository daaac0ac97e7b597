import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import { withoutEnd } from "../lib/without-end.ts";

/** What a tool has answered, in text: what is not text is only said to be there. */
export function textOfAnswer({ content, structuredContent }: CallToolResult): string {
  const parts = content.map(textOf);
  // Servers repeat it as text; where one does not, it is all there is.
  if (structuredContent !== undefined && !content.some(({ type }) => type === "text")) {
    parts.push(JSON.stringify(structuredContent));
  }
  return parts.join("\n\n") || "[the tool has answered nothing]";
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type} of ${block.mimeType}, ${bytesOf(block.data)} bytes: not shown]`;
    case "resource_link":
      return `[link to the resource ${block.uri}${block.name === "" ? "" : ` (${block.name})`}]`;
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return `[the resource ${resource.uri}]\n${resource.text}`;
      const type = resource.mimeType ?? "application/octet-stream";
      return `[the resource ${resource.uri}: ${bytesOf(resource.blob)} bytes of ${type}, not shown]`;
    }
  }
}

/** Of what base64 stands for. */
const bytesOf = (base64: string): number => Math.floor((withoutEnd(base64, "=").length * 3) / 4);
