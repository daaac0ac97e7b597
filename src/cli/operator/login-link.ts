import { note, printJson, say } from "../output.ts";
import { type DataOptions, withData } from "./data-folder.ts";
import { readEmail } from "./email.ts";

/** `roost login-link EMAIL`: a link that signs in once, and makes the account where the e-mail is new. */
export function makeLoginLink(email: string, options: DataOptions & { json?: true }): Promise<void> {
  const address = readEmail(email);
  return withData(options, "create", ({ links, config }) => {
    const { publicUrl, host, port, inviteCredit } = config;
    const url = `${(publicUrl ?? `http://${reachable(host)}:${port}`).replace(/\/$/, "")}/#link=${links.create(address, inviteCredit)}`;
    if (options.json) printJson({ email: address, url });
    else say(url);
    const assumed = publicUrl === null ? "; it assumes that the server listens there: else set ROOST_PUBLIC_URL" : "";
    if (!options.json) note(`Signs ${address} in, once, within the hour${assumed}.`);
  });
}

/** An address to listen on everywhere is none to go to. */
function reachable(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}
