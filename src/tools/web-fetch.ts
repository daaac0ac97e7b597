import { z } from "zod";
import type { Egress } from "../egress/egress.ts";
import { cutText, describeBinary, shownStatus, textOf } from "./answer-text.ts";
import { MAX_PAGE_TEXT } from "./page/page.ts";
import type { PageReader } from "./page/page-reader.ts";
import { PLACEHOLDER_START } from "./secret-broker.ts";
import type { Tool } from "./tool.ts";

const input = z.lazy(() =>
  z.object({
    url: z
      .string()
      .max(8_192)
      .refine((url) => url.search(PLACEHOLDER_START) < 0, { error: "web_fetch sends no secrets: use http_request" })
      .describe("the page's address, with https://"),
  }),
);

export interface WebFetchParts {
  egress: Pick<Egress, "send">;
  pages: PageReader;
  accountOf(instanceId: string): string;
}

/** A page of the web as Markdown (docs/contract/runtime.md, Tools). */
export const createWebFetch = ({ egress, pages, accountOf }: WebFetchParts): Tool<typeof input> => ({
  name: "web_fetch",
  description: "Reads a web page by its address, as Markdown; text and JSON as they are.",
  input,
  // The request and the page have deadlines of their own; the rest is for waiting in turn.
  deadlineMs: 60_000,
  isCore: true,
  changes: "nothing",
  untrustedOutput: true,
  async run({ url }, { instanceId, runId, signal }) {
    const accountId = accountOf(instanceId);
    const headers = { Accept: "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5" };
    const message = { method: "GET", headers, body: null };
    const answer = await egress.send({ url, message, accountId, instanceId, runId, signal });
    const lines = [`URL: ${answer.url}`];
    if (answer.status !== 200) lines.push(`Status: ${shownStatus(answer.status)}`);
    const found = textOf(answer);
    if (found.kind === "binary") return [...lines, "", describeBinary(found.type, answer.body)].join("\n");
    if (found.kind === "text") return [...lines, "", cutText(found.text, MAX_PAGE_TEXT)].join("\n");
    const page = await pages.read(accountId, found.text, answer.url, signal);
    if (page.title !== "") lines.push(`Title: ${page.title}`);
    return [...lines, "", page.text || "[the page has no text; it may be built by scripts, which are not run]"].join(
      "\n",
    );
  },
});
