import { type Account, call, isSignedIn, signOut, takeNotice } from "./api.ts";
import { openChat } from "./chat.ts";
import { armCopyButtons, attempt, money, part } from "./dom.ts";
import { openKeys } from "./keys.ts";
import { type Filling, showNextSteps } from "./next-steps.ts";
import { followLink, offerSignIn, takeLink } from "./sign-in.ts";
import { openTopUp } from "./top-up.ts";

const BALANCE_EVERY_MS = 60_000;

async function open(): Promise<void> {
  const link = takeLink();
  const notice = takeNotice();
  armCopyButtons();
  const leave = part("sign-out", HTMLButtonElement);
  leave.addEventListener("click", () => void attempt(leave, signOut));
  // A sign-in link pasted into the address of this page changes nothing but the part behind `#`.
  addEventListener("hashchange", () => location.hash.startsWith("#link=") && location.reload());

  const account = link !== null ? await followLink(link) : isSignedIn() ? await readAccount() : null;
  if (account) return showAccountPage(account);
  part("notice", HTMLElement).textContent = notice;
  offerSignIn((account) => {
    part("signed-out", HTMLElement).hidden = true;
    showAccountPage(account);
  });
}

const readAccount = () => call<Account>("GET", "/auth/me");

function showAccountPage(account: Account): void {
  const filling: Filling = { key: null, instanceId: null, agentId: null };
  const fill = (more: Partial<Filling>) => showNextSteps(Object.assign(filling, more));
  const refresh = () => void readAccount().then(showAccount, () => undefined);
  showAccount(account);
  fill({});
  part("signed-in", HTMLElement).hidden = false;
  part("sign-out", HTMLElement).hidden = false;
  openTopUp(refresh);
  openKeys((key) => fill({ key }));
  void openChat(({ instance, agent }) => fill({ instanceId: instance.instanceId, agentId: agent.agentId }), refresh);
  setInterval(() => document.visibilityState === "visible" && refresh(), BALANCE_EVERY_MS);
}

function showAccount({ name, email, balance, currency, limits }: Account): void {
  const say = (id: string, text: string) => {
    part(id, HTMLElement).textContent = text;
  };
  say("account-name", name);
  say("account-email", email);
  say("balance", money(balance));
  say("currency", currency);
  say("spent", money(limits.spentThisMonth));
  say("limit", limits.monthlyLimit === null ? "none" : money(limits.monthlyLimit));
}

open().catch(() => {
  // The server answered the page but not the account: nothing to show but the way in.
  part("notice", HTMLElement).textContent = "The server does not answer. Load the page again when it runs.";
});
