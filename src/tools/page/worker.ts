import type { Page } from "./page.ts";
import { plainPage, readablePage, strip } from "./readable.ts";

/** Reads pages on a thread of its own: one at a time, and it may be ended at any moment. */
export interface PageTask {
  id: number;
  html: string;
  url: string;
}

/** First the plain text, which is there in any case, then the readable one. */
export interface PageReply {
  id: number;
  kind: "plain" | "readable" | "failed";
  page: Page | null;
}

declare const self: Worker;

self.onmessage = ({ data: { id, html, url } }: MessageEvent<PageTask>) => {
  const reply = (kind: PageReply["kind"], page: Page | null) =>
    self.postMessage({ id, kind, page } satisfies PageReply);
  try {
    const stripped = strip(html);
    reply("plain", plainPage(stripped.html));
    reply("readable", readablePage(stripped, url));
  } catch {
    // Too deep for the stack, or more than the parser takes: the plain text stands.
    reply("failed", null);
  }
};
