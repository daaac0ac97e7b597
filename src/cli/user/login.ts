import { hostname } from "node:os";
import { Failure } from "../failure.ts";
import { balanceCents, note, printJson, say } from "../output.ts";
import { type Client, createClient, DEFAULT_URL, explainError, isRefusal, type Records, RoostError } from "./client.ts";
import { loginOf, type ServerOptions, saveLogin, withEnvironment } from "./credentials.ts";
import { readInput } from "./input.ts";
import { checkAccount, notRoost, readAccount } from "./own-account.ts";
import { askHidden, openPrompt, type Prompt } from "./prompt.ts";

export interface LoginOptions extends ServerOptions {
  email?: string;
  invite?: string;
  json?: true;
}

/**
 * `roost login`: signs in with a mailed code, or with `--key`. Saves the server's address and an API key, mode 0600,
 * under a profile that is named after the server's host by default. The server is `--url`, else that of the profile,
 * else that of the environment, else this machine's.
 */
export async function login(options: LoginOptions): Promise<void> {
  const { profile, ...typed } = options;
  const usual = withEnvironment(typed);
  const before = profile === undefined ? null : loginOf(profile);
  const url = typed.url ?? before?.url ?? usual.url ?? DEFAULT_URL;
  const given = profile === undefined ? usual.key : typed.key;
  const key = typed.key === "-" ? await readKey() : given;
  const account = key === undefined ? await signIn(url, options) : await saveKey(url, key, profile);
  if (options.json) printJson(account);
  else
    say(
      `Signed in to ${url} as ${account.email}: the balance is ${balanceCents(account.balance)} ${account.currency}.`,
    );
}

/** For `--key -`: other users of the machine can read arguments. */
async function readKey(): Promise<string> {
  const key = process.stdin.isTTY ? await askHidden("API key: ") : await readInput("the key", MAX_KEY_BYTES);
  if (key !== "") return key;
  throw new Failure("the key is empty", "with --key -, it is read from standard input");
}

const MAX_KEY_BYTES = 16 * 1024;

async function saveKey(url: string, key: string, profile: string | undefined): Promise<Records["Account"]> {
  const account = await readAccount(createClient(url, key));
  const { accountId, email } = account;
  saveLogin({ url, key, keyId: null, accountId, email }, profile);
  return account;
}

async function signIn(url: string, options: LoginOptions): Promise<Records["Account"]> {
  const prompt = openPrompt();
  try {
    const client = createClient(url, null);
    note(`Signing in to ${url}.`);
    const email = options.email ?? (await prompt.ask("E-mail: "));
    await sendCode(client, email, options.invite, prompt);
    const { token, account } = await verify(client, email, prompt);
    checkAccount(client, account);
    const name = `roost login on ${hostname()}`.slice(0, 100);
    const signedIn = createClient(url, token);
    // With all that the token may do: a person signs in here, who decides about approvals too.
    const { key, keyId } = await signedIn.post("/v1/auth/keys", {
      body: { name, scopes: ["read", "write", "chat", "approve"] },
    });
    if (typeof key !== "string" || typeof keyId !== "string") throw notRoost(client);
    const { accountId } = account;
    const before = saveLogin({ url, key, keyId, accountId, email: account.email }, options.profile);
    if (before?.url === url && before.accountId === accountId) await revoke(signedIn, before.keyId);
    await signOut(signedIn);
    return account;
  } finally {
    prompt.close();
  }
}

/** Sends a code. One that was sent shortly before still works, so then there is nothing to wait for. */
async function sendCode(client: Client, email: string, invite: string | undefined, prompt: Prompt): Promise<void> {
  const send = (inviteCode?: string) =>
    client.post("/v1/auth/send-code", { body: inviteCode === undefined ? { email } : { email, inviteCode } });
  try {
    await send(invite);
  } catch (error) {
    if (isRefusal(error) && error.code === "rate_limited") {
      note(`${explainError(error).message}. If you have been sent one, give that.`);
      return;
    }
    if (!isRefusal(error) || error.code !== "invite_required" || invite !== undefined) throw error;
    note("This e-mail address is new here: registering takes an invite code.");
    await untilRight("Invite: ", prompt, send, ({ code }) => code === "invite_required");
  }
  note(`A code is on its way to ${email}. (On a host without mail, its operator can see it with: roost outbox)`);
}

const TRIES = 3;

async function verify(
  client: Client,
  email: string,
  prompt: Prompt,
): Promise<{ token: string; account: Records["Account"] }> {
  const send = (typed: string) =>
    client.post("/v1/auth/verify-code", { body: { email, code: typed.replaceAll(/\s/g, "") } });
  return await untilRight("Code: ", prompt, send, ({ status }) => status === 401 || status === 400);
}

/** Asks again where what was typed is wrong. */
async function untilRight<T>(
  question: string,
  prompt: Prompt,
  send: (typed: string) => Promise<T>,
  isWrong: (refusal: RoostError) => boolean,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    const typed = await prompt.ask(question);
    try {
      return await send(typed);
    } catch (error) {
      if (!isRefusal(error) || !isWrong(error) || tried === TRIES) throw error;
      note(explainError(error).message);
    }
  }
}

/** Revokes the key of the login that this one replaces. */
async function revoke(client: Client, keyId: string | null): Promise<void> {
  if (keyId === null) return;
  try {
    await client.delete("/v1/auth/keys/{keyId}", { path: { keyId } });
  } catch (error) {
    if (!isRefusal(error) || error.code !== "not_found") throw error;
  }
}

/** Ends the token that created the key. A failure does not fail the login: the token expires within a day. */
async function signOut(client: Client): Promise<void> {
  try {
    await client.post("/v1/auth/sign-out");
  } catch (error) {
    if (!(error instanceof RoostError)) throw error;
  }
}
