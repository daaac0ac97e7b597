import { type Account, beginSession, call, forgetSession } from "./api.ts";
import { attempt, part, sayError } from "./dom.ts";

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

/** Signs in by a link; where that fails, says so beside the other ways. */
export async function redeemLink(link: string): Promise<Account | null> {
  forgetSession();
  try {
    return begin(await call<SignedIn>("POST", "/auth/redeem-link", { link }));
  } catch (error) {
    sayError(part("sign-in-alert", HTMLElement), error);
    return null;
  }
}

/** Shows the forms for a code by e-mail; `signedIn` is told when one was right. */
export function offerSignIn(signedIn: (account: Account) => void): void {
  part("signed-out", HTMLElement).hidden = false;
  email.focus();
  askForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(askForm, async () => {
      const invite = inviteCode.value.trim();
      await call("POST", "/auth/send-code", { email: email.value, ...(invite && { inviteCode: invite }) });
      part("sent-to", HTMLElement).textContent = email.value.trim();
      showForm(enterForm, code);
    });
  });
  enterForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(enterForm, async () => {
      const given = { email: email.value, code: code.value.replaceAll(/\s/g, "") };
      const ownName = name.value.trim();
      signedIn(begin(await call("POST", "/auth/verify-code", { ...given, ...(ownName && { name: ownName }) })));
    });
  });
  part("other-address", HTMLButtonElement).addEventListener("click", () => showForm(askForm, email));
}

function begin({ token, account }: SignedIn): Account {
  beginSession(token);
  return account;
}

function showForm(form: HTMLFormElement, first: HTMLInputElement): void {
  askForm.hidden = form !== askForm;
  enterForm.hidden = form !== enterForm;
  code.value = "";
  first.focus();
}
