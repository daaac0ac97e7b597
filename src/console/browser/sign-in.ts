import { ApiError, beginSession, callSignedOut, readSession } from "./api.ts";
import { attempt, forgetFaults, part, sayAt, sayError } from "./dom.ts";
import type { Account } from "./records.ts";

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

/** The token in the address, taken out of it at once: it must stay in no history, no bookmark and no screenshot. */
export function takeLink(): string | null {
  const [, link = null] = /^#link=(.+)$/.exec(location.hash) ?? [];
  if (link !== null) history.replaceState(null, "", location.pathname);
  return link;
}

/**
 * Signs in by a link; where that fails, says so beside the other ways. Who is signed in already is asked first: a link
 * from somebody else would put them, unseen, into an account that is not theirs.
 */
export async function followLink(link: string): Promise<Account | null> {
  const current = await readSession();
  if (current) return askToReplace(current, link);
  try {
    return await redeem(link);
  } catch (error) {
    sayError(part("sign-in-alert", HTMLElement), error);
    return null;
  }
}

/** The account that was chosen: the one of now, or that of the link. */
function askToReplace(current: Account, link: string): Promise<Account> {
  const question = part("replace-session", HTMLElement);
  const keep = part("keep-session", HTMLButtonElement);
  part("current-email", HTMLElement).textContent = current.email;
  question.hidden = false;
  keep.focus();
  return new Promise((resolve) => {
    const offer = (button: HTMLButtonElement, choose: () => Promise<Account>) =>
      button.addEventListener("click", () => {
        void attempt(button, async () => {
          resolve(await choose());
          question.hidden = true;
        });
      });
    offer(keep, async () => current);
    offer(part("use-link", HTMLButtonElement), () => redeem(link));
  });
}

const redeem = async (link: string): Promise<Account> => begin(await callSignedOut("/auth/redeem-link", { link }));

/** Shows the forms for a code; `signedIn` is told when one was right. */
export function offerSignIn(signedIn: (account: Account) => void): void {
  part("signed-out", HTMLElement).hidden = false;
  email.focus();
  void sayWhereCodesGo();
  askForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(askForm, () => explained(askForm, askForCode));
  });
  enterForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(enterForm, () => explained(enterForm, async () => signedIn(await enterCode())));
  });
  part("other-address", HTMLButtonElement).addEventListener("click", () => showForm(askForm, email));
}

async function askForCode(): Promise<void> {
  const invite = inviteCode.value.trim();
  await callSignedOut("/auth/send-code", { email: email.value, ...(invite && { inviteCode: invite }) });
  for (const place of enterForm.querySelectorAll(".asked-for")) place.textContent = email.value.trim();
  showForm(enterForm, code);
}

async function enterCode(): Promise<Account> {
  const given = { email: email.value, code: code.value.replaceAll(/\s/g, "") };
  const ownName = name.value.trim();
  return begin(await callSignedOut("/auth/verify-code", { ...given, ...(ownName && { name: ownName }) }));
}

/** Says a refusal in a person's words, at the field that it is about. Throws what is about no field. */
async function explained(form: HTMLFormElement, work: () => Promise<void>): Promise<void> {
  forgetFaults(form);
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const fault = form === askForm ? faultOfAsking(error) : faultOfCode(error);
    if (fault === null) throw describeSystemError(error);
    const [field, words] = fault;
    sayAt(field, words);
  }
}

type Fault = [field: HTMLInputElement, words: string];

function faultOfAsking({ code, message }: ApiError): Fault | null {
  if (code === "invalid_request" && message.startsWith("email")) {
    return [email, "This is not an e-mail address. One looks like ada@example.com."];
  }
  const isAboutInvite = code === "invite_required" || (code === "invalid_request" && message.startsWith("inviteCode"));
  if (!isAboutInvite) return null;
  if (inviteCode.value.trim() !== "") {
    const again = "If you have signed in here before, leave it empty.";
    return [inviteCode, `This invite code is not good: mistyped, used up, or over. ${again}`];
  }
  part("newcomer", HTMLDetailsElement).open = true;
  const newcomers = "If you are new here, fill in the invite code that this host's operator gave you.";
  return [email, `Nobody signs in here as ${email.value.trim()}. Is it spelt right? ${newcomers}`];
}

function faultOfCode({ code: refused }: ApiError): Fault | null {
  if (refused === "invalid_request") return [code, "A code has eight digits."];
  if (refused !== "unauthorized") return null;
  return [code, "This code is wrong or over. One is good for ten minutes, and only the newest counts."];
}

function describeSystemError(error: ApiError): ApiError {
  const { code, message, nextStep, retryAfterSeconds: seconds } = error;
  switch (code) {
    case "rate_limited": {
      const when =
        seconds === null ? "later" : seconds < 90 ? `in ${seconds} seconds` : `in ${Math.ceil(seconds / 60)} minutes`;
      return new ApiError(code, "That was tried too often", `Try again ${when}.`);
    }
    case "forbidden":
      return new ApiError(code, "This account is suspended", "Ask the operator of this host.");
    case "invite_required":
      return new ApiError(code, "The invite was used up meanwhile", "Ask the operator of this host for another.");
    default:
      return new ApiError(code, message, nextStep);
  }
}

/** Whether this host sends mail, said before anybody waits for one. */
async function sayWhereCodesGo(): Promise<void> {
  const answer = await fetch("/console/host.json").catch(() => null);
  if (!answer?.ok) return;
  const { mailed } = (await answer.json()) as { mailed: boolean };
  part("gate-lead", HTMLElement).textContent = mailed
    ? "Sign in with a code that this host sends to your e-mail address."
    : "Sign in with a code. This host sends no mail: the code appears on its terminal.";
  part("code-mailed", HTMLElement).hidden = !mailed;
  part("code-kept", HTMLElement).hidden = mailed;
}

function begin({ token, account }: SignedIn): Account {
  beginSession(token);
  return account;
}

function showForm(form: HTMLFormElement, first: HTMLInputElement): void {
  askForm.hidden = form !== askForm;
  enterForm.hidden = form !== enterForm;
  code.value = "";
  forgetFaults(form);
  first.focus();
}
