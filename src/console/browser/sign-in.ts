import { RoostError } from "../../../clients/typescript/src/index.ts";
import { beginSession, readSession, stranger } from "./api.ts";
import { attempt, clearFieldErrors, part, showError, showFieldError } from "./dom.ts";
import type { Account } from "./records.ts";
import { ToldError } from "./told-error.ts";

interface SignedIn {
  token: string;
  account: Account;
}

const askForm = part("ask-code", HTMLFormElement);
const email = part("email", HTMLInputElement);
const inviteCode = part("invite-code", HTMLInputElement);
const name = part("your-name", HTMLInputElement);
const enterForm = part("enter-code", HTMLFormElement);
const code = part("code", HTMLInputElement);

/** The token in the URL, removed from it at once: it must not stay in the history, a bookmark or a screenshot. */
export function takeLink(): string | null {
  const [, link = null] = /^#link=(.+)$/.exec(location.hash) ?? [];
  if (link !== null) history.replaceState(null, "", location.pathname);
  return link;
}

/**
 * Signs in with a link; if that fails, shows the error next to the other ways to sign in. A user who is signed in
 * already is asked first: somebody else's link would silently switch them to an account that is not theirs.
 */
export async function followLink(link: string): Promise<Account | null> {
  const current = await readSession();
  if (current) return askToReplace(current, link);
  try {
    return await redeem(link);
  } catch (error) {
    showError(part("sign-in-alert", HTMLElement), error);
    return null;
  }
}

/** Resolves with the account chosen: the current one, or the link's. */
function askToReplace(current: Account, link: string): Promise<Account> {
  const question = part("replace-session", HTMLElement);
  const keep = part("keep-session", HTMLButtonElement);
  part("current-email", HTMLElement).textContent = current.email;
  question.hidden = false;
  keep.focus();
  return new Promise((resolve) => {
    const offer = (button: HTMLButtonElement, choose: () => Promise<Account>) =>
      button.addEventListener("click", () => {
        // The other one must not be chosen meanwhile.
        void attempt(question, async () => {
          resolve(await choose());
          question.hidden = true;
        });
      });
    offer(keep, async () => current);
    offer(part("use-link", HTMLButtonElement), () => redeem(link));
  });
}

async function redeem(link: string): Promise<Account> {
  try {
    return startSession(await stranger.post("/v1/auth/redeem-link", { body: { link } }));
  } catch (error) {
    // It is the link that is refused: no session has ended.
    if (error instanceof RoostError && error.code === "unauthorized") throw new ToldError(error.message, "");
    throw error;
  }
}

/** Shows the forms for signing in with a code; calls `signedIn` when one is accepted. */
export function offerSignIn(signedIn: (account: Account) => void): void {
  part("signed-out", HTMLElement).hidden = false;
  email.focus();
  void showWhereCodesGo();
  askForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(askForm, () => withFieldErrors(askForm, askForCode));
  });
  enterForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(enterForm, () => withFieldErrors(enterForm, async () => signedIn(await enterCode())));
  });
  part("other-address", HTMLButtonElement).addEventListener("click", () => showForm(askForm, email));
}

async function askForCode(): Promise<void> {
  const invite = inviteCode.value.trim();
  await stranger.post("/v1/auth/send-code", { body: { email: email.value, inviteCode: invite || undefined } });
  for (const place of enterForm.querySelectorAll(".asked-for")) place.textContent = email.value.trim();
  showForm(enterForm, code);
}

async function enterCode(): Promise<Account> {
  const given = { email: email.value, code: code.value.replaceAll(/\s/g, "") };
  const ownName = name.value.trim();
  return startSession(await stranger.post("/v1/auth/verify-code", { body: { ...given, name: ownName || undefined } }));
}

/** Explains an error next to the field that it is about. Throws an error that is about no field. */
async function withFieldErrors(form: HTMLFormElement, work: () => Promise<void>): Promise<void> {
  clearFieldErrors(form);
  try {
    await work();
  } catch (error) {
    if (!(error instanceof RoostError)) throw error;
    const fault = form === askForm ? faultOfAsking(error) : faultOfCode(error);
    if (fault === null) throw explain(error);
    const [field, words] = fault;
    showFieldError(field, words);
  }
}

type Fault = [field: HTMLInputElement, words: string];

function faultOfAsking({ code, message }: RoostError): Fault | null {
  if (code === "invalid_request" && message.startsWith("email")) {
    return [email, "This is not an e-mail address. One looks like ada@example.com."];
  }
  const isAboutInvite = code === "invite_required" || (code === "invalid_request" && message.startsWith("inviteCode"));
  if (!isAboutInvite) return null;
  if (inviteCode.value.trim() !== "") {
    const again = "If you have signed in here before, leave it empty.";
    return [inviteCode, `This invite code is not valid: mistyped, used up or expired. ${again}`];
  }
  part("newcomer", HTMLDetailsElement).open = true;
  const newcomers = "If you are new here, enter the invite code that the operator of this host gave you.";
  return [email, `There is no account for ${email.value.trim()} here. Is it spelt right? ${newcomers}`];
}

function faultOfCode({ code: refused }: RoostError): Fault | null {
  if (refused === "invalid_request") return [code, "A code has eight digits."];
  if (refused !== "unauthorized") return null;
  return [code, "This code is wrong or expired. A code is valid for ten minutes, and only the newest one works."];
}

function explain(error: RoostError): Error {
  const { code, retryAfterSeconds: seconds } = error;
  switch (code) {
    case "rate_limited": {
      const when =
        seconds === null ? "later" : seconds < 90 ? `in ${seconds} seconds` : `in ${Math.ceil(seconds / 60)} minutes`;
      return new ToldError("Too many tries", `Try again ${when}.`);
    }
    case "forbidden":
      return new ToldError("This account is suspended", "Ask the operator of this host.");
    case "invite_required":
      return new ToldError("The invite has been used up", "Ask the operator of this host for another.");
    default:
      return error;
  }
}

/** Says whether this host sends mail, before anybody waits for it. */
async function showWhereCodesGo(): Promise<void> {
  const answer = await fetch("/console/host.json").catch(() => null);
  if (!answer?.ok) return;
  const { mailed } = (await answer.json()) as { mailed: boolean };
  part("gate-lead", HTMLElement).textContent = mailed
    ? "Sign in with a code sent to your e-mail address."
    : "Sign in with a code. This host sends no mail: the code is shown on its terminal.";
  part("code-mailed", HTMLElement).hidden = !mailed;
  part("code-kept", HTMLElement).hidden = mailed;
}

function startSession({ token, account }: SignedIn): Account {
  beginSession(token);
  return account;
}

function showForm(form: HTMLFormElement, first: HTMLInputElement): void {
  askForm.hidden = form !== askForm;
  enterForm.hidden = form !== enterForm;
  code.value = "";
  clearFieldErrors(form);
  first.focus();
}
