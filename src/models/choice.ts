import { isLocal, isServed, nameOf, OPENAI_PREFIX } from "../lib/model-name.ts";
import { LOCAL_MODEL } from "./local-models.ts";

/**
 * Which models agents may use. The operator, who pays for a server's models, decides (docs/contract/operations.md,
 * Settings).
 */
export interface ModelChoice {
  allows(model: string): boolean;
  /** Whether the operator has named it, or it is embedded: `*` names none. */
  isNamed(model: string): boolean;
  /** Describes the allowed names. */
  readonly expected: string;
}

/** `names` with or without `openai:`; `*` allows any. The host's default model is always allowed. */
export function createModelChoice(names: readonly string[], ownModel: string): ModelChoice {
  const allowed = new Set([ownModel, ...names.map((name) => (isLocal(name) ? name : withPrefix(name)))]);
  const isNamed = (model: string) => model === LOCAL_MODEL || allowed.has(model);
  if (names.includes("*")) return { allows: () => true, isNamed, expected: "local:<name> or openai:<name>" };
  const served = [...allowed].filter((name) => !isLocal(name));
  return {
    // Local ones always are: they run on the host's own processors, whose time is shared fairly.
    allows: (model) => isLocal(model) || allowed.has(model),
    isNamed,
    expected: ["local:<name>", ...served].join(" or "),
  };
}

const withPrefix = (name: string): string => (isServed(name) ? name : OPENAI_PREFIX + name);

/** As the host's choice; an instance that brings a server of its own pays for its models, and may name any of them. */
export const withOwnServers = (
  { allows, expected }: ModelChoice,
  servers: { versionOf(instanceId: string): string | null },
): { allows(model: string, instanceId: string): boolean; expected: string } => ({
  expected,
  allows: (model, instanceId) =>
    allows(model) || (isServed(model) && nameOf(model) !== "" && servers.versionOf(instanceId) !== null),
});
