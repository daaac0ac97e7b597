import { type Account, beginSession, callSignedOut, readSession } from "./api.ts";
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

/** Shows the forms for a code by e-mail; `signedIn` is told when one was right. */
export function offerSignIn(signedIn: (account: Account) => void): void {
  part("signed-out", HTMLElement).hidden = false;
  email.focus();
  askForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(askForm, async () => {
      const invite = inviteCode.value.trim();
      await callSignedOut("/auth/send-code", { email: email.value, ...(invite && { inviteCode: invite }) });
      part("sent-to", HTMLElement).textContent = email.value.trim();
      showForm(enterForm, code);
    });
  });
  enterForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(enterForm, async () => {
      const given = { email: email.value, code: code.value.replaceAll(/\s/g, "") };
      const ownName = name.value.trim();
      signedIn(begin(await callSignedOut("/auth/verify-code", { ...given, ...(ownName && { name: ownName }) })));
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
