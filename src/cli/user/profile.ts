import { printJson, printTable, say } from "../output.ts";
import { readLogins, useProfile } from "./credentials.ts";

/** `roost profile list`: the saved logins. */
export function listProfiles({ json }: { json?: true }): void {
  const { current, logins } = readLogins();
  const profiles = Object.entries(logins).map(([profile, { url, email, accountId }]) => ({
    profile,
    url,
    email,
    accountId,
    current: profile === current,
  }));
  if (json) printJson(profiles);
  else
    printTable(
      ["", "PROFILE", "SERVER", "E-MAIL"],
      profiles.map(({ profile, url, email, current }) => [current ? "*" : "", profile, url, email]),
      "You are not signed in: roost login",
      { shorten: ["PROFILE", "SERVER", "E-MAIL"] },
    );
}

/** `roost profile use PROFILE`: chooses the login for commands that name none. */
export function chooseProfile(profile: string, { json }: { json?: true }): void {
  const { url, email, accountId } = useProfile(profile);
  if (json) printJson({ profile, url, email, accountId, current: true });
  else say(`Commands now go to ${url} as ${email}.`);
}
