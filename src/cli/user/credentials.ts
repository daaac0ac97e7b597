import { mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { createPrivateFile, writePrivateFile } from "../../lib/private-file.ts";
import { describeSystemError, hasCode } from "../../lib/system-error.ts";
import { holdFile } from "../../storage/lock.ts";
import { serverUrl } from "../arguments.ts";
import { Failure, UsageError } from "../failure.ts";
import { shellWord } from "../shell-word.ts";
import { type Client, type ClientOptions, createClient, DEFAULT_URL, loginAt } from "./client.ts";

/** Which login a command uses. */
export interface LoginChoice {
  url?: string;
  profile?: string;
}

/** Which server a user command talks to, and as whom. */
export interface ServerOptions extends LoginChoice {
  /** Instead of the login's. */
  key?: string;
}

/** The options given, completed from the environment. With a profile given, the environment is ignored. */
export function withEnvironment<Options extends ServerOptions>(typed: Options): Options {
  const { ROOST_URL, ROOST_PROFILE, ROOST_API_KEY } = process.env;
  if (typed.profile !== undefined) return typed;
  const usual = ROOST_URL ? urlFromEnvironment(ROOST_URL) : undefined;
  const url = typed.url ?? usual;
  // ROOST_API_KEY set together with ROOST_URL is only for that server.
  const key = typed.key ?? (usual === undefined || usual === url ? ROOST_API_KEY || undefined : undefined);
  const profile = url === undefined ? ROOST_PROFILE || undefined : undefined;
  return { ...typed, url, key, profile };
}

function urlFromEnvironment(text: string): string {
  try {
    return serverUrl(text);
  } catch (cause) {
    throw new UsageError("ROOST_URL is not the address of a server", "expected a URL such as http://127.0.0.1:7373", {
      cause,
    });
  }
}

const Login = z.object({
  url: z.string(),
  key: z.string(),
  /** Id of the key, if `roost login` created it; null if it was given one. */
  keyId: z.string().nullable(),
  accountId: z.string(),
  email: z.string(),
});
export type Login = z.infer<typeof Login>;

/** What `roost login` saves: logins by profile, and the one that is used when a command names none. */
const Saved = z.object({ current: z.string().nullable(), logins: z.record(z.string(), z.unknown()) });
type Saved = z.infer<typeof Saved>;
export interface Logins {
  current: string | null;
  logins: Record<string, Login>;
}

export const configFolder = (): string => join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "roost");
const credentialsFile = (): string => join(configFolder(), "credentials.json");

/** The logins that can be used: one that cannot does not spoil the others, and is kept. Throws like `readSaved`. */
export function readLogins(): Logins {
  const { current, logins } = readSaved();
  const usable = Object.entries(logins).flatMap(([name, saved]) => {
    const { success, data } = Login.safeParse(saved);
    return success ? [[name, data] as const] : [];
  });
  return { current, logins: Object.fromEntries(usable) };
}

/** Throws, saying how to fix it, if the file cannot be read or holds anything else. */
function readSaved(): Saved {
  const path = credentialsFile();
  try {
    return Saved.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (cause) {
    if (hasCode(cause, "ENOENT")) return { current: null, logins: {} };
    if (!(cause instanceof SyntaxError || cause instanceof z.ZodError)) {
      throw describeSystemError(`${path} cannot be read`, cause, "give --url and --key");
    }
    throw new Failure(`${path} does not hold logins`, "remove it, and sign in again: roost login", { cause });
  }
}

/** Mode 0600. */
const writeSaved = (saved: Saved): void => writePrivateFile(credentialsFile(), `${JSON.stringify(saved, null, 2)}\n`);

const MAX_LOCK_TRIES = 500;
const LOCK_RETRY_MS = 20;

/**
 * Reads and writes logins while no other process does: commands that run at the same time would lose each other's. In a
 * folder of mode 0700.
 */
function exclusively<T>(work: () => T): T {
  const lock = join(configFolder(), "credentials.lock");
  mkdirSync(configFolder(), { recursive: true, mode: 0o700 });
  createPrivateFile(lock);
  for (let tries = 1; ; tries++) {
    const held = holdFile(lock);
    if (held === null && tries === MAX_LOCK_TRIES) throw new Failure(`another command holds ${lock}`, "try again");
    if (held === null) Bun.sleepSync(LOCK_RETRY_MS);
    else
      try {
        return work();
      } finally {
        held.release();
      }
  }
}

/**
 * Saves a login under the profile, by default one that is named after its server, and makes it the current one. Returns
 * the login that it replaces.
 */
export const saveLogin = (login: Login, profile?: string): Login | null =>
  exclusively(() => {
    const name = profile ?? profileFor(login);
    const before = loginOf(name);
    writeSaved({ current: name, logins: { ...readSaved().logins, [name]: login } });
    return before;
  });

/** The server's host; with the e-mail address before it, if another account uses that name. */
function profileFor({ url, email }: Login): string {
  const host = url.replace(/^https?:\/\//, "");
  const other = loginOf(host);
  return other === null || other.email === email ? host : `${email}@${host}`;
}

/** Deletes a login. If only one is left, it becomes the current one. */
export const deleteLogin = (profile: string): void =>
  exclusively(() => {
    const { current, logins } = readSaved();
    const left = Object.entries(logins).filter(([name]) => name !== profile);
    const [only] = left.length === 1 ? left : [];
    writeSaved({ current: current === profile ? (only?.[0] ?? null) : current, logins: Object.fromEntries(left) });
  });

/** Makes a login the current one. Throws if there is no such profile. */
export const useProfile = (profile: string): Login =>
  exclusively(() => {
    const login = requireProfile(profile);
    writeSaved({ ...readSaved(), current: profile });
    return login;
  });

/** The login to use: the profile's, else the server's, else the current one. Null if there is none. */
export function findLogin({ url, profile }: LoginChoice): { profile: string; login: Login } | null {
  if (profile !== undefined) {
    const login = requireProfile(profile);
    if (url !== undefined && url !== login.url) {
      throw new UsageError(`the profile ${profile} is for ${login.url}, not for ${url}`, "give only one of the two");
    }
    return { profile, login };
  }
  const { current, logins } = readLogins();
  if (url === undefined && current !== null && loginOf(current) === null) throw unusable(current);
  const fitting = Object.entries(logins).filter(([, login]) => url === undefined || login.url === url);
  const meant = fitting.find(([name]) => name === current) ?? (fitting.length === 1 ? fitting[0] : undefined);
  if (meant !== undefined) return { profile: meant[0], login: meant[1] };
  if (fitting.length === 0) return null;
  const names = fitting.map(([name]) => name).join(", ");
  throw new Failure(`several logins match: ${names}`, "choose with --profile, or roost profile use NAME");
}

/** Null if there is no such profile. */
export function loginOf(profile: string): Login | null {
  const { logins } = readLogins();
  return Object.hasOwn(logins, profile) ? (logins[profile] ?? null) : null;
}

function requireProfile(profile: string): Login {
  const login = loginOf(profile);
  if (login !== null) return login;
  if (Object.hasOwn(readSaved().logins, profile)) throw unusable(profile);
  throw new Failure(`there is no profile ${profile}`, "to list profiles: roost profile list");
}

const unusable = (profile: string): Failure =>
  new Failure(
    `the login ${profile} in ${credentialsFile()} cannot be used`,
    `sign in again: roost login --profile ${shellWord(profile)}, or choose another: roost profile use NAME`,
  );

/** `findLogin`, but throws if there is none. */
export function requireLogin(choice: LoginChoice): { profile: string; login: Login } {
  const found = findLogin(choice);
  if (found !== null) return found;
  const { url } = choice;
  throw new Failure(
    `you are not signed in${url === undefined ? "" : ` to ${url}`}`,
    `run ${loginAt(url ?? DEFAULT_URL)}, or give --key`,
  );
}

/** The server to talk to, without needing a login. */
export const serverOf = (choice: LoginChoice): string =>
  choice.profile === undefined && choice.url !== undefined ? choice.url : (findLogin(choice)?.login.url ?? DEFAULT_URL);

/** A client for the chosen server and credential. A login's key is never sent to another server. */
export function openClient({ key, ...choice }: ServerOptions, options?: ClientOptions): Client {
  if (key !== undefined) return createClient(serverOf(choice), key, options);
  const { login } = requireLogin(choice);
  return createClient(login.url, login.key, options);
}
