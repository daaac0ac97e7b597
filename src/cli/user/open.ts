import { note, say } from "../output.ts";
import { type LoginChoice, serverOf } from "./credentials.ts";

/** A program that fails to open a page exits within this time; one still running has opened it. */
const DEADLINE_MS = 2_000;

/** `roost open`: opens the console in a browser; only prints its address if there is none, or with `--print`. */
export async function openConsole({ print, ...choice }: LoginChoice & { print?: true }): Promise<void> {
  const address = `${serverOf(choice)}/`;
  say(address);
  if (!print) await openPage(address);
}

/** Opens an address that was printed, if somebody at a terminal has a browser. */
export async function openPage(address: string): Promise<void> {
  const opener = process.stdout.isTTY === true ? findOpener() : null;
  if (opener === null) return;
  if (!(await start([opener, address]))) note(`${opener} could not open it: open the address above yourself.`);
}

/** The program that opens pages on this machine; null if nobody would see them. */
function findOpener(): string | null {
  const { BROWSER, DISPLAY, WAYLAND_DISPLAY } = process.env;
  if (BROWSER) return Bun.which(BROWSER);
  if (process.platform === "darwin") return Bun.which("open");
  return DISPLAY || WAYLAND_DISPLAY ? Bun.which("xdg-open") : null;
}

/** False if it failed at once. A browser keeps running on its own. */
async function start(command: string[]): Promise<boolean> {
  const child = Bun.spawn(command, { stdio: ["ignore", "ignore", "ignore"] });
  child.unref();
  return await Promise.race([child.exited.then((code) => code === 0), Bun.sleep(DEADLINE_MS).then(() => true)]);
}
