import { accessSync, constants } from "node:fs";

/**
 * Debian's Chromium: first the one without windows, the same engine, whose pages take half as much processor time (a file of 15
 * tests: 18 s instead of 44).
 */
const PACKAGES = ["chromium-headless-shell", "chromium"];
const PLACES = [
  ...PACKAGES.map((name) => `/usr/bin/${name}`),
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The path of Chromium or Chrome: `$CHROME_PATH`, else where packages install it. */
export const findChromium = (): string | undefined =>
  [process.env.CHROME_PATH, ...PLACES].find((path): path is string => path !== undefined && isExecutable(path));

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Installs Debian's Chromium if this process may; returns its path, or undefined. */
export async function installChromium(): Promise<string | undefined> {
  if (process.getuid?.() !== 0 || Bun.which("apt-get") === null) return undefined;
  console.log("installing Debian's Chromium for the browser tests");
  if (!(await aptGet("update"))) return undefined;
  for (const name of PACKAGES) {
    if (await aptGet("install", "--yes", "--no-install-recommends", name)) break;
  }
  return findChromium();
}

async function aptGet(...words: string[]): Promise<boolean> {
  const child = Bun.spawn(["apt-get", "-qq", ...words], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  return (await child.exited) === 0;
}
