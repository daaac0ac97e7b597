import { isObject } from "./is-object.ts";

/**
 * The inputs of a tool, a line for each, with all that their JSON Schema says of them: so that whoever approves a tool sees
 * what a model is told.
 */
export function inputLines({ type: _, $schema: __, ...schema }: Readonly<Record<string, unknown>>): string[] {
  const { properties, required, additionalProperties, ...others } = schema;
  const named = isObject(properties) ? Object.entries(properties) : [];
  const needed: unknown[] = Array.isArray(required) ? required : [];
  const more = additionalProperties === false ? others : { ...others, additionalProperties };
  return [...named.map(([name, about]) => line(name, about, needed.includes(name))), rest(more)].filter(Boolean);
}

function line(name: string, about: unknown, isNeeded: boolean): string {
  if (!isObject(about)) return `${name}: ${JSON.stringify(about)}`;
  const { type, description, ...more } = about;
  const kind = [type === undefined ? [] : type, isNeeded ? "required" : []].flat().join(", ");
  const said = description === undefined ? "" : `: ${description}`;
  return `${name}${kind && ` (${kind})`}${said} ${rest(more)}`.trim();
}

/** Nothing for what would be `{}`. */
function rest(more: Record<string, unknown>): string {
  const text = JSON.stringify(more);
  return text === "{}" ? "" : text;
}
