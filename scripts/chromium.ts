import { accessSync, constants } from "node:fs";

const PLACES = [
  "/usr/bin/chromium",
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

/** Installs Debian's chromium if this process may; returns its path, or undefined. */
export async function installChromium(): Promise<string | undefined> {
  if (process.getuid?.() !== 0 || Bun.which("apt-get") === null) return undefined;
  console.log("installing Debian's chromium for the browser tests");
  for (const words of [["update"], ["install", "--yes", "--no-install-recommends", "chromium"]]) {
    const child = Bun.spawn(["apt-get", "-qq", ...words], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      stdio: ["ignore", "ignore", "inherit"],
    });
    if ((await child.exited) !== 0) return undefined;
  }
  return findChromium();
}
