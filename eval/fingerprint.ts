import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Variant } from "./answers.ts";
import { type Case, readPersonas } from "./cases.ts";

/** The sources that an answer depends on, besides the cases. If they change, earlier answers are not reused. */
const SOURCES: Readonly<Record<Variant, readonly string[]>> = {
  plain: [
    "models/SHA256SUMS",
    "src/models/local/generation.ts",
    "src/models/local/sampling.ts",
    "src/models/local/text-stream.ts",
    "src/models/local/tokenizer.ts",
    "workspaces/default/SOUL.md",
  ],
  roost: [
    "models/SHA256SUMS",
    "src/agents/default-files.ts",
    "src/lib/language.ts",
    "src/lib/worked-examples.ts",
    "src/messages/runs/prepare.ts",
    "src/models/local",
    "src/models/local.ts",
    "src/runtime",
    "workspaces/default",
  ],
};

export function fingerprint(root: string, variant: Variant): string {
  const hash = new Bun.CryptoHasher("sha256");
  hash.update(
    JSON.stringify(readPersonas().map(({ name, soul, conversations }) => [name, soul, conversations.map(questions)])),
  );
  for (const path of SOURCES[variant].flatMap((name) => filesBelow(join(root, name)))) {
    hash.update(path.slice(root.length)).update(readFileSync(path));
  }
  return hash.digest("hex").slice(0, 16);
}

/** A case's references and rules affect how an answer is judged, not the answer itself. */
const questions = (conversation: readonly Case[]) => conversation.map(({ id, say }) => [id, say]);

function filesBelow(path: string): string[] {
  if (/\.\w+$|SUMS$/.test(path)) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
