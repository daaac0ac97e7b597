import type { MessageQueries, Order } from "./queries.ts";
import type { Message } from "./schema.ts";

/** How much text a page of history has at most, in UTF-8; the rest is on the next page. */
const PAGE_BYTES = 256 * 1024;

export interface HistoryPage {
  rows: Message[];
  hasMore: boolean;
}

/** At most `limit` messages, and fewer if their text would exceed the page's size. */
export function readPage(
  queries: Pick<MessageQueries, "page" | "sizes">,
  conversationId: string,
  order: Order,
  after: number | null,
  limit: number,
): HistoryPage {
  const sizes = queries.sizes(conversationId, order, after, limit + 1);
  let left = PAGE_BYTES;
  const end = sizes.findIndex((bytes) => {
    left -= bytes;
    return left < 0;
  });
  // At least one, however long it is.
  const count = Math.min(limit, end < 0 ? sizes.length : Math.max(1, end));
  return { rows: queries.page(conversationId, order, after, count), hasMore: sizes.length > count };
}
