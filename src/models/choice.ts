/** Which models agents may name: the operator pays for those of a server, so the operator says which (operations.md). */
export interface ModelChoice {
  allows(model: string): boolean;
  /** What a name is expected to be, in words. */
  readonly expected: string;
}

/** Names with or without `openai:`; `*` allows any, and the host's own model is always among them. */
export function createModelChoice(names: readonly string[], ownModel: string): ModelChoice {
  if (names.includes("*")) return { allows: () => true, expected: "local:<name> or openai:<name>" };
  const allowed = new Set([ownModel, ...names.map((name) => (isLocal(name) ? name : withPrefix(name)))]);
  const served = [...allowed].filter((name) => !isLocal(name));
  return {
    allows: (model) => isLocal(model) || allowed.has(model),
    expected: ["local:<name>", ...served].join(" or "),
  };
}

/** They run on the host's own processors, whose time is shared fairly, so none needs to be allowed. */
const isLocal = (model: string): boolean => model.startsWith("local:");

const withPrefix = (name: string): string => (name.startsWith("openai:") ? name : `openai:${name}`);
