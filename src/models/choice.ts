/**
 * Which models agents may use. The operator, who pays for a server's models, decides (docs/contract/operations.md,
 * Settings).
 */
export interface ModelChoice {
  allows(model: string): boolean;
  /** Describes the allowed names. */
  readonly expected: string;
}

/** `names` with or without `openai:`; `*` allows any. The host's default model is always allowed. */
export function createModelChoice(names: readonly string[], ownModel: string): ModelChoice {
  if (names.includes("*")) return { allows: () => true, expected: "local:<name> or openai:<name>" };
  const allowed = new Set([ownModel, ...names.map((name) => (isLocal(name) ? name : withPrefix(name)))]);
  const served = [...allowed].filter((name) => !isLocal(name));
  return {
    allows: (model) => isLocal(model) || allowed.has(model),
    expected: ["local:<name>", ...served].join(" or "),
  };
}

/** Always allowed: they run on the host's own processors, whose time is shared fairly. */
const isLocal = (model: string): boolean => model.startsWith("local:");

const withPrefix = (name: string): string => (name.startsWith("openai:") ? name : `openai:${name}`);

/** As the host's choice; an instance that brings a server of its own pays for its models, and may name any of them. */
export const withOwnServers = (
  { allows, expected }: ModelChoice,
  servers: { versionOf(instanceId: string): string | null },
): { allows(model: string, instanceId: string): boolean; expected: string } => ({
  expected,
  allows: (model, instanceId) => allows(model) || (/^openai:./.test(model) && servers.versionOf(instanceId) !== null),
});
