import { join } from "node:path";
import { embeddedFolder } from "../../../src/lib/embedded-folder.ts";

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came
export type Script = (input: unknown) => any;

/**
 * A script of a built-in skill, as `skill:calculator/calculate.js` names it. Its input and its result go through JSON, as in
 * the sandbox.
 */
export async function loadScript(name: string): Promise<Script> {
  const module = await import(join(embeddedFolder("skills"), name.replace("/", "/scripts/")));
  return (input) => JSON.parse(JSON.stringify(module.default(JSON.parse(JSON.stringify(input)))));
}
