import { isAbsolute, relative, resolve } from "node:path";
import { SETTINGS } from "../../config/settings.ts";

/** A path that nothing in a shell takes for anything else. */
const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/**
 * How whoever reads this runs a command of this program on this data folder: `dist/roost outbox --data ./data`.
 * `elsewhere` is for readers who are not where this runs, such as those of the log.
 */
export function roost(words: string, dataDir: string, { elsewhere = false } = {}): string {
  const program = Bun.isStandaloneExecutable ? (elsewhere ? process.execPath : typedHere(process.argv0)) : "roost";
  const assumed = resolve(process.env.ROOST_DATA_DIR || SETTINGS.dataDir.fallback);
  const folder = elsewhere ? dataDir : near(dataDir);
  return `${quoted(program)} ${words}${!elsewhere && dataDir === assumed ? "" : ` --data ${quoted(folder)}`}`;
}

const typedHere = (program: string): string => (isAbsolute(program) ? near(program) : program);

/** A path as it is shortest from the current folder, where it is below it. */
function near(path: string): string {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") || isAbsolute(short) ? path : `./${short}`;
}
