import { readEmbeddedFolder } from "../lib/embedded-folder.ts";
import { lazily } from "../lib/lazily.ts";

/** The persona files of a new agent: name → text. */
export function readDefaultFiles(): Map<string, string> {
  const files = [...readEmbeddedFolder("workspaces")].flatMap(([path, text]): [string, string][] =>
    path.startsWith("default/") ? [[path.slice("default/".length), text]] : [],
  );
  return new Map(files);
}

/** SHA-256 (hex) of earlier versions of these files, which unchanged older agents still have. */
const FORMER: ReadonlySet<string> = new Set([
  "88df4fad7e5cdebd6d8dca816474c95bf0fae12f72b8fb06708151107a189244", // IDENTITY.md
  "3f78115cfe18c495149c47da6e9cd3d7f87851d25a021c02a01795ad3cfde68c", // SOUL.md
  "8eaf4cb8aaec02f614dd2362a9684249e7771ea2b70eea9e16c0bcbf88085893", // SOUL.md
]);

const defaultFiles = lazily(readDefaultFiles);

/** Whether a file is still the default that the agent was created with. */
export const isUnchanged = ({ name, text }: { name: string; text: string }): boolean =>
  defaultFiles().get(name) === text || FORMER.has(new Bun.CryptoHasher("sha256").update(text).digest("hex"));
