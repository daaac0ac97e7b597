import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { writePrivateFile } from "../../lib/private-file.ts";
import { serverUrl } from "../arguments.ts";
import { Failure, WrongUsage } from "../failure.ts";
import { type Client, createClient, DEFAULT_URL, loginAt } from "./client.ts";

/** Which login a command means. */
export interface LoginChoice {
  url?: string;
  profile?: string;
}

/** Where a user command goes and as whom. */
export interface ServerOptions extends LoginChoice {
  /** In place of a login's. */
  key?: string;
}

/** What was typed, else what the environment says. A profile that is typed takes the place of all of that. */
export function withEnvironment<Options extends ServerOptions>(typed: Options): Options {
  const { ROOST_URL, ROOST_PROFILE, ROOST_API_KEY } = process.env;
  if (typed.profile !== undefined) return typed;
  const usual = ROOST_URL ? usualUrl(ROOST_URL) : undefined;
  const url = typed.url ?? usual;
  // A key that stands beside an address is for that address.
  const key = typed.key ?? (usual === undefined || usual === url ? ROOST_API_KEY || undefined : undefined);
  const profile = url === undefined ? ROOST_PROFILE || undefined : undefined;
  return { ...typed, url, key, profile };
}

function usualUrl(text: string): string {
  try {
    return serverUrl(text);
  } catch (cause) {
    throw new WrongUsage("ROOST_URL is not the address of a server", "such as http://127.0.0.1:7373", { cause });
  }
}

const Login = z.object({
  url: z.string(),
  key: z.string(),
  /** Of a key that `roost login` made; null for one that it was given. */
  keyId: z.string().nullable(),
  accountId: z.string(),
  email: z.string(),
});
export type Login = z.infer<typeof Login>;

/** What `roost login` keeps: logins by their profile, and which of them commands mean that name none. */
const Logins = z.object({ current: z.string().nullable(), logins: z.record(z.string(), Login) });
export type Logins = z.infer<typeof Logins>;

export const configFolder = (): string => join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "roost");
const credentialsFile = (): string => join(configFolder(), "credentials.json");

/** Throws, with the mend, for a file that says something else. */
export function readLogins(): Logins {
  const path = credentialsFile();
  if (!existsSync(path)) return { current: null, logins: {} };
  try {
    return Logins.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (cause) {
    if (!(cause instanceof SyntaxError || cause instanceof z.ZodError)) throw cause;
    throw new Failure(`${path} does not hold logins`, "remove it, and sign in again: roost login", { cause });
  }
}

/** Mode 0600, in a folder of mode 0700. */
function writeLogins(logins: Logins): void {
  mkdirSync(configFolder(), { recursive: true, mode: 0o700 });
  writePrivateFile(credentialsFile(), `${JSON.stringify(logins, null, 2)}\n`);
}

/** Keeps a login under its profile, which commands mean from now on. */
export function keepLogin(profile: string, login: Login): void {
  writeLogins({ current: profile, logins: { ...readLogins().logins, [profile]: login } });
}

/** Forgets a login; the one that is left, if it is one, is meant from now on. */
export function forgetLogin(profile: string): void {
  const { current, logins } = readLogins();
  const left = Object.entries(logins).filter(([name]) => name !== profile);
  const [only] = left.length === 1 ? left : [];
  writeLogins({ current: current === profile ? (only?.[0] ?? null) : current, logins: Object.fromEntries(left) });
}

/** Throws where there is no such profile. */
export function useProfile(profile: string): Login {
  const login = requireProfile(profile);
  writeLogins({ ...readLogins(), current: profile });
  return login;
}

/** The login that is meant: of the profile, else of the server, else the current one. Null where there is none. */
export function findLogin({ url, profile }: LoginChoice): { profile: string; login: Login } | null {
  if (profile !== undefined) {
    const login = requireProfile(profile);
    if (url !== undefined && url !== login.url) {
      throw new WrongUsage(`the profile ${profile} is of ${login.url}, not of ${url}`, "give one of the two");
    }
    return { profile, login };
  }
  const { current, logins } = readLogins();
  const fitting = Object.entries(logins).filter(([, login]) => url === undefined || login.url === url);
  const meant = fitting.find(([name]) => name === current) ?? (fitting.length === 1 ? fitting[0] : undefined);
  if (meant !== undefined) return { profile: meant[0], login: meant[1] };
  if (fitting.length === 0) return null;
  const names = fitting.map(([name]) => name).join(", ");
  throw new Failure(`several logins could be meant: ${names}`, "choose with --profile, or roost profile use NAME");
}

/** Null where there is no such profile. */
export function loginOf(profile: string): Login | null {
  const { logins } = readLogins();
  return Object.hasOwn(logins, profile) ? (logins[profile] ?? null) : null;
}

function requireProfile(profile: string): Login {
  const login = loginOf(profile);
  if (login !== null) return login;
  throw new Failure(`there is no profile ${profile}`, "roost profile list shows those there are");
}

/** `findLogin`, where there is to be one. */
export function requireLogin(choice: LoginChoice): { profile: string; login: Login } {
  const found = findLogin(choice);
  if (found !== null) return found;
  const { url } = choice;
  throw new Failure(
    `you are not signed in${url === undefined ? "" : ` to ${url}`}`,
    `${loginAt(url ?? DEFAULT_URL)}, or --key`,
  );
}

/** The server that is meant: a login's key is not needed for it. */
export const serverOf = (choice: LoginChoice): string =>
  choice.profile === undefined && choice.url !== undefined ? choice.url : (findLogin(choice)?.login.url ?? DEFAULT_URL);

/** The server and credential that are meant. A login's key never goes to another server than its own. */
export function openClient({ key, ...choice }: ServerOptions): Client {
  if (key !== undefined) return createClient(serverOf(choice), key);
  const { login } = requireLogin(choice);
  return createClient(login.url, login.key);
}
