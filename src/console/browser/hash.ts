/** The fragment of the page's URL that shows an instance, one of its agents, or a conversation of that. */
export const hashOf = (...path: readonly (string | null)[]): string =>
  `#${path.filter((part) => part !== null).join("/")}`;
