import { Failure } from "../failure.ts";
import { note, printJson, say } from "../output.ts";
import { createClient, Refusal } from "./client.ts";
import { forgetLogin, type Login, type LoginChoice, requireLogin } from "./credentials.ts";

export interface LogoutOptions extends LoginChoice {
  /** Leaves the server alone. */
  local?: true;
  json?: true;
}

/** `roost logout`: the login's credential is worth nothing any more, and is forgotten here. */
export async function logout(options: LogoutOptions): Promise<void> {
  const { profile, login } = requireLogin(options);
  const ended = options.local ? false : await end(login);
  forgetLogin(profile);
  if (options.json) printJson({ profile, url: login.url, ended });
  else {
    say(`Signed out of ${login.url}.`);
    if (!ended) note("The key still works on the server: who has it can go on using it until it is revoked there.");
  }
}

/**
 * True when the server takes the credential no more. A key that `roost login` made is revoked and a token signed out; a
 * key that it was given may be in use elsewhere, and stays.
 */
async function end({ url, key, keyId }: Login): Promise<boolean> {
  const client = createClient(url, key);
  try {
    if (keyId === null) await client.call("POST", "/v1/auth/sign-out");
    else await client.call("DELETE", `/v1/auth/keys/${encodeURIComponent(keyId)}`);
    return true;
  } catch (error) {
    if (error instanceof Refusal && (error.status === 401 || error.status === 404)) return true;
    if (error instanceof Refusal && error.status === 403 && keyId === null) return false;
    if (!(error instanceof Failure)) throw error;
    throw new Failure(error.message, "roost logout --local forgets the login here alone", { cause: error });
  }
}
