import { isAbsolute, relative, resolve } from "node:path";
import { SETTINGS } from "../../config/settings.ts";

/** A path, quoted for a shell if necessary. */
const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/**
 * The command line that runs a command on this data folder, to copy and paste: `dist/roost outbox --data ./data`.
 * `elsewhere` makes paths absolute, for readers in another folder, such as those of the log.
 */
export function roost(words: string, dataDir: string, { elsewhere = false } = {}): string {
  const program = Bun.isStandaloneExecutable ? (elsewhere ? process.execPath : typedHere(process.argv0)) : "roost";
  const assumed = resolve(process.env.ROOST_DATA_DIR || SETTINGS.dataDir.fallback);
  const folder = elsewhere ? dataDir : near(dataDir);
  return `${quoted(program)} ${words}${!elsewhere && dataDir === assumed ? "" : ` --data ${quoted(folder)}`}`;
}

const typedHere = (program: string): string => (isAbsolute(program) ? near(program) : program);

/** A path relative to the current folder, if it is inside it. */
function near(path: string): string {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") || isAbsolute(short) ? path : `./${short}`;
}
