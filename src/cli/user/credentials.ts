import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { writePrivateFile } from "../../lib/private-file.ts";
import { Failure } from "../failure.ts";
import { type Client, createClient } from "./client.ts";

/** Where a user command goes and as whom; commander fills them from `ROOST_URL` and `ROOST_API_KEY` too. */
export interface ServerOptions {
  url?: string;
  key?: string;
}

/** What `roost login` keeps. */
export interface Credentials {
  url: string;
  key: string;
  keyId: string | null;
  accountId: string;
  email: string;
}

export const DEFAULT_URL = "http://127.0.0.1:7373";

export const configFolder = (): string => join(process.env.XDG_CONFIG_HOME || join(homedir(), ".config"), "roost");
const credentialsFile = (): string => join(configFolder(), "credentials.json");

/** Null before the first login. Throws, with the mend, for a file that says nothing. */
export function readCredentials(): Credentials | null {
  const path = credentialsFile();
  if (!existsSync(path)) return null;
  try {
    const read = JSON.parse(readFileSync(path, "utf8")) as Partial<Credentials>;
    if (typeof read.url === "string" && typeof read.key === "string") return read as Credentials;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
  }
  throw new Failure(`${path} cannot be read`, "roost login writes it anew");
}

export function writeCredentials(credentials: Credentials): void {
  mkdirSync(configFolder(), { recursive: true, mode: 0o700 });
  writePrivateFile(credentialsFile(), `${JSON.stringify(credentials, null, 2)}\n`);
}

/** The server of `--url` and `--key`, else of the login. A login's key never goes to another server than its own. */
export function openClient({ url, key }: ServerOptions): Client {
  if (key !== undefined) return createClient(url ?? readCredentials()?.url ?? DEFAULT_URL, key);
  const known = readCredentials();
  if (known !== null && (url === undefined || url === known.url)) return createClient(known.url, known.key);
  const where = url === undefined ? "" : ` to ${url}`;
  throw new Failure(
    `you are not signed in${where}`,
    `roost login${url === undefined ? "" : ` --url ${url}`}, or --key`,
  );
}
