import { Failure } from "../failure.ts";
import { note, printJson, say } from "../output.ts";
import { createClient, explainError, isRefusal, RoostError } from "./client.ts";
import { deleteLogin, type Login, type LoginChoice, requireLogin } from "./credentials.ts";

export interface LogoutOptions extends LoginChoice {
  /** Does not contact the server. */
  local?: true;
  json?: true;
}

/** `roost logout`: ends the login's credential on the server, and deletes it here. */
export async function logout(options: LogoutOptions): Promise<void> {
  const { profile, login } = requireLogin(options);
  const ended = options.local ? false : await end(login);
  deleteLogin(profile);
  if (options.json) printJson({ profile, url: login.url, ended });
  else {
    say(`Signed out of ${login.url}.`);
    if (!ended) note("The key still works: anyone who has it can use it until it is revoked on the server.");
  }
}

/**
 * True if the server no longer accepts the credential. A key that `roost login` created is revoked, a token signed out;
 * a key that it was given may be in use elsewhere and stays valid.
 */
async function end({ url, key, keyId }: Login): Promise<boolean> {
  const client = createClient(url, key);
  try {
    if (keyId === null) await client.post("/v1/auth/sign-out");
    else await client.delete("/v1/auth/keys/{keyId}", { path: { keyId } });
    return true;
  } catch (error) {
    if (isRefusal(error) && (error.status === 401 || error.status === 404)) return true;
    if (isRefusal(error) && error.status === 403 && keyId === null) return false;
    if (!(error instanceof RoostError)) throw error;
    throw new Failure(explainError(error).message, "to delete the login here only: roost logout --local", {
      cause: error,
    });
  }
}
