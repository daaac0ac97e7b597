/** A page as an agent reads it. */
export interface Page {
  title: string;
  text: string;
}

/** Longer content is cut. */
export const MAX_PAGE_TEXT = 400_000;
