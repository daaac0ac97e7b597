import type { Config } from "../../config.ts";
import { reachableUrl } from "../../http/reachable-url.ts";
import { serverOf } from "../../storage/lock.ts";
import { Failure } from "../failure.ts";
import { note, printJson, say } from "../output.ts";
import { roost } from "./advice.ts";
import { type DataOptions, withData } from "./data-folder.ts";
import { readEmail } from "./email.ts";

/** `roost login-link EMAIL`: a link that signs in once, and creates the account if the e-mail address is new. */
export function makeLoginLink(email: string, options: DataOptions & { json?: true }): Promise<void> {
  const address = readEmail(email);
  return withData(options, "create", async ({ links, config }) => {
    const { url: base, assumed } = await findServer(config);
    const url = `${base}/#link=${links.create(address, config.inviteCredit)}`;
    if (options.json) printJson({ email: address, url });
    else say(url);
    if (options.json) return;
    note(`Signs ${address} in, once, within an hour.`);
    if (assumed) note(`No server is running on this folder. Start it first: ${roost("serve", config.dataDir)}`);
  });
}

const STARTS_WITHIN_MS = 5000;
const LOOK_AGAIN_MS = 50;

/** Where browsers reach this folder's server; `assumed` when it is not running, so the URL is what it would be. */
async function findServer(config: Config): Promise<{ url: string; assumed: boolean }> {
  for (const deadline = Date.now() + STARTS_WITHIN_MS; ; await Bun.sleep(LOOK_AGAIN_MS)) {
    const server = serverOf(config.dataDir);
    if (server === null) break;
    const url = config.publicUrl ?? server.url;
    if (url !== null) return { url, assumed: false };
    if (Date.now() > deadline) throw new Failure("the server is starting and is not listening yet", "try again");
  }
  const { publicUrl, host, port, dataDir } = config;
  if (publicUrl === null && port === 0) {
    throw new Failure(
      "no server is running on this folder, and ROOST_PORT is 0: its port is not known yet",
      `start it first: ${roost("serve", dataDir)}`,
    );
  }
  return { url: publicUrl ?? reachableUrl(host, port), assumed: true };
}
