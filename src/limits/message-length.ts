/** Characters of a message to an agent, whoever sends it (docs/contract/api.md, Sizes). */
export const MAX_MESSAGE = 32_000;
