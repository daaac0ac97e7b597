import { note, say } from "../output.ts";
import { type LoginChoice, serverOf } from "./credentials.ts";

/** How long a program may take to say that it cannot open a page; one that goes on after it has. */
const DEADLINE_MS = 2_000;

/** `roost open`: the console in a browser; its address alone where there is none, or with `--print`. */
export async function openConsole({ print, ...choice }: LoginChoice & { print?: true }): Promise<void> {
  const address = `${serverOf(choice)}/`;
  say(address);
  const opener = print || process.stdout.isTTY !== true ? null : findOpener();
  if (opener === null) return;
  if (!(await start([opener, address]))) note(`${opener} could not open it: open the address above yourself.`);
}

/** What opens pages on this machine; null where nobody sees them. */
function findOpener(): string | null {
  const { BROWSER, DISPLAY, WAYLAND_DISPLAY } = process.env;
  if (BROWSER) return Bun.which(BROWSER);
  if (process.platform === "darwin") return Bun.which("open");
  return DISPLAY || WAYLAND_DISPLAY ? Bun.which("xdg-open") : null;
}

/** False when it ended at once with a failure. A browser that stays is left to itself. */
async function start(command: string[]): Promise<boolean> {
  const child = Bun.spawn(command, { stdio: ["ignore", "ignore", "ignore"] });
  child.unref();
  return await Promise.race([child.exited.then((code) => code === 0), Bun.sleep(DEADLINE_MS).then(() => true)]);
}
