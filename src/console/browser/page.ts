import { RoostError } from "../../../clients/typescript/src/index.ts";
import { createAgentPage } from "./agent-page.ts";
import {
  endSession,
  isSignedIn,
  joinSession,
  roost,
  shareSession,
  showsAccount,
  signOut,
  takeNotice,
  whenRefused,
} from "./api.ts";
import { openApprovals } from "./approvals.ts";
import { createChat } from "./chat.ts";
import { alertFor, armCopyButtons, attempt, hideErrors, part, reportErrors, showError } from "./dom.ts";
import { showEntries } from "./entries.ts";
import { hashOf } from "./hash.ts";
import { type Choice, listInstances } from "./instances.ts";
import { openKeys } from "./keys.ts";
import { type Facts, showModel } from "./model.ts";
import { balanceCents, cents, exact, isNothing } from "./money.ts";
import { openMonthlyLimit } from "./monthly-limit.ts";
import { openNewAgent } from "./new-agent.ts";
import { type Filling, showNextSteps } from "./next-steps.ts";
import { readOpenApprovals } from "./open-approvals.ts";
import type { Account } from "./records.ts";
import { followLink, offerSignIn, takeLink } from "./sign-in.ts";
import { setTitle } from "./title.ts";
import { isAway, ToldError, toldError } from "./told-error.ts";
import { openTopUp } from "./top-up.ts";
import { openUsage } from "./usage.ts";
import { type Place, placeOf, showView } from "./views.ts";

const POLL_INTERVAL_MS = 15_000;

async function open(): Promise<void> {
  const link = takeLink();
  const notice = takeNotice();
  armCopyButtons();
  // The fragment of the URL names what is shown: it stays.
  part("skip", HTMLAnchorElement).addEventListener("click", (event) => {
    event.preventDefault();
    part("main", HTMLElement).focus();
  });
  const leave = part("sign-out", HTMLButtonElement);
  leave.addEventListener("click", () => void attempt(leave, signOut));
  // A sign-in link pasted into this page's address bar only changes the part after `#`, which loads nothing.
  addEventListener("hashchange", () => location.hash.startsWith("#link=") && location.reload());

  shareSession();
  // After signing out, a tab must not join another's session until the user reloads the page.
  if (notice === "") await joinSession();
  const account = link !== null ? await followLink(link) : isSignedIn() ? await readAccount() : null;
  if (account) return showPages(account);
  part("notice", HTMLElement).textContent = notice;
  offerSignIn((account) => {
    part("signed-out", HTMLElement).hidden = true;
    part("notice", HTMLElement).textContent = "";
    void showPages(account).catch(showFailure);
  });
}

const readAccount = () => roost.get("/v1/auth/me");

/** What is slow to come is told of in a word. */
const showLoading = (is: boolean) => part("main", HTMLElement).classList.toggle("busy", is);

async function showPages(account: Account): Promise<void> {
  showsAccount(account.accountId);
  showLoading(true);
  const [billing, host] = await Promise.all([roost.get("/v1/billing"), roost.get("/v1/host")]);
  const charges = !isNothing(billing.pricePerHour) || !isNothing(billing.minimumLaunchBalance);
  const facts: Facts = { billing, charges, host };
  const filling: Filling = { key: null, instanceId: null, agentId: null };
  const fill = (more: Partial<Filling>) => showNextSteps(Object.assign(filling, more));
  const showBalance = (account: Account) => {
    showAccount(account, charges);
    chat.showAccount(account);
  };
  const readBalance = () => readAccount().then(showBalance);

  const agentPage = createAgentPage(facts, {
    imported: () => instances.refresh(),
    async changed(instanceId, agentId) {
      instances.readAnew(instanceId);
      await instances.refresh();
      if (agentId !== null) await instances.choose(instanceId, agentId);
    },
  });
  const loadApprovals = openApprovals();
  const loadUsage = openUsage();
  let chosen: Choice | null = null;
  /** What the URL said when the last choice began. */
  let asked = location.hash;
  let focusWhenOpen = false;
  const showPlace = () => {
    const { view, part: wanted } = placeOf(location.hash);
    showView(view);
    const isOfAgent = view === "chat" || view === "agent";
    const name = part(`to-${isOfAgent ? "chat" : view}`, HTMLElement).firstChild?.textContent ?? "";
    const shown = (isOfAgent && chosen?.agent?.displayName) || name;
    const inside = wanted === null ? "" : `${part(`${wanted}-title`, HTMLElement).textContent} · `;
    setTitle({ place: inside + shown });
  };
  const price = charges ? `While it runs, it costs ${exact(billing.pricePerHour)} ${billing.currency} an hour.` : "";
  const tellNewAgent = openNewAgent(price, (instance, agent) => {
    instances.show(instance);
    location.hash = hashOf(instance.instanceId, agent?.agentId ?? null);
    focusWhenOpen = true;
  });
  const chat = createChat(account.accountId, {
    ...facts,
    instanceChanged: (instance) => instances.show(instance),
    write(hash) {
      location.hash = hash;
      focusWhenOpen = true;
    },
    spent: () => void readBalance().catch(() => undefined),
  });
  const instances = listInstances(
    charges,
    chat.hold,
    async (choice) => {
      chosen = choice;
      tellNewAgent(choice);
      // Who went elsewhere meanwhile is shown that next.
      if (location.hash === asked) nameInUrl(choice);
      asked = location.hash;
      showPlace();
      fill({ instanceId: choice?.instance.instanceId ?? null, agentId: choice?.agent?.agentId ?? null });
      if (choice) agentPage.open(choice);
      const { part: wanted } = placeOf(location.hash);
      await Promise.all([chat.open(choice), wanted && agentPage.show(wanted)]);
      if (focusWhenOpen) part("chat-input", HTMLTextAreaElement).focus();
      focusWhenOpen = false;
    },
    chat.showInstance,
  );

  whenRefused(() => void instances.refresh().catch(() => undefined));
  showBalance(account);
  fill({});
  showModel(host);
  openMonthlyLimit((account) => showBalance(account));
  openTopUp(billing.minimumTopUp, () => void Promise.all([readBalance(), showEntries()]));
  const loadKeys = openKeys((key) => fill({ key }));
  for (const id of ["views", "signed-in"]) part(id, HTMLElement).hidden = false;
  part("purse", HTMLElement).hidden = !charges;
  part("top-up", HTMLElement).hidden = !charges;

  await instances.refresh();
  /** Shows what the URL names; where that is gone, what it was in, and says so. */
  const choose = async ({ instanceId, agentId, conversationId }: Place, isWanted: () => boolean) => {
    const path = [instanceId, agentId, conversationId].filter((id) => id !== null);
    let gone: string | undefined;
    const chooseOrLeave = async (): Promise<void> => {
      const [instance = null, agent = null, conversation = null] = path;
      try {
        await instances.choose(instance, agent, conversation);
      } catch (error) {
        if (path.pop() === undefined || !(error instanceof RoostError && error.code === "not_found")) throw error;
        if (!isWanted()) return;
        gone = ["instance", "agent", "conversation"][path.length];
        history.replaceState(null, "", hashOf(...path));
        asked = location.hash;
        // What is gone is not listed any more, nor chosen instead.
        await instances.refresh();
        await chooseOrLeave();
      }
    };
    await chooseOrLeave();
    const alert = alertFor(part("chat-form", HTMLElement));
    if (gone === undefined || !alert || !isWanted()) return;
    showError(
      alert,
      new ToldError(`this ${gone} is not there any more`, "It may have been deleted. This is what there is."),
    );
  };
  const show = async (isWanted: () => boolean) => {
    asked = location.hash;
    const place = placeOf(location.hash);
    const { view, instanceId, agentId, part: wanted } = place;
    showPlace();
    if (view === "account") {
      loadKeys();
      if (charges) void showEntries();
    }
    if (view === "approvals") await loadApprovals();
    if (view === "usage") await loadUsage();
    if (wanted && agentId === chosen?.agent?.agentId) {
      instances.keep();
      await agentPage.show(wanted);
    } else if (instanceId !== null || (view === "chat" && chosen === null)) {
      await choose(place, isWanted);
    } else if (view === "chat") {
      nameInUrl(chosen);
      asked = location.hash;
    }
  };
  let shows = 0;
  const go = () => {
    const mine = ++shows;
    const isWanted = () => mine === shows;
    const place = part(placeOf(location.hash).part ? "view-agent" : "chat-form", HTMLElement);
    showLoading(true);
    return reportErrors(place, () => show(isWanted), isWanted).finally(() => isWanted() && showLoading(false));
  };
  addEventListener("hashchange", () => void go());
  const look = () => {
    if (document.visibilityState === "hidden") return;
    void Promise.all([instances.refresh(), chat.catchUp(), readBalance(), readOpenApprovals()]).then(
      () => hideErrors(isAway),
      () => undefined,
    );
  };
  setInterval(look, POLL_INTERVAL_MS);
  document.addEventListener("visibilitychange", look);
  void readOpenApprovals().catch(() => undefined);
  // A slow conversation keeps nothing else from being read again.
  await go();
}

/** Names in the URL what is chosen, where it names only the chat, or what is gone: so going back shows the same again. */
function nameInUrl(choice: Choice | null): void {
  const { view, part: shownPart } = placeOf(location.hash);
  if (choice === null || (view !== "chat" && view !== "agent")) return;
  const { instance, agent, conversationId } = choice;
  const inside = agent && (shownPart ?? conversationId);
  history.replaceState(null, "", hashOf(instance.instanceId, agent?.agentId ?? null, inside));
}

function showAccount({ name, email, balance, currency, limits }: Account, charges: boolean): void {
  const say = (id: string, text: string) => {
    part(id, HTMLElement).textContent = text;
  };
  say("account-name", name);
  say("account-email", email);
  for (const id of ["account-money", "change-limit"]) part(id, HTMLElement).hidden = !charges;
  part("account-free", HTMLElement).hidden = charges;
  say("purse-balance", `${balanceCents(balance)} ${currency}`);
  say("balance", balanceCents(balance));
  part("balance", HTMLElement).title = exact(balance);
  say("spent", cents(limits.spentThisMonth));
  part("spent", HTMLElement).title = exact(limits.spentThisMonth);
  for (const place of document.querySelectorAll(".currency")) place.textContent = currency;
  say("limit", limits.monthlyLimit === null ? "none" : `${exact(limits.monthlyLimit)} ${currency}`);
}

/** The server sent the page but not the account: there is nothing else to show. */
function showFailure(error: unknown): void {
  showLoading(false);
  const { message, nextStep } = toldError(error);
  const notice = `${message.charAt(0).toUpperCase()}${message.slice(1)}. ${nextStep}`.trimEnd();
  // A suspended account: somebody else may sign in.
  if (error instanceof RoostError && error.status === 403) endSession(notice);
  else part("notice", HTMLElement).textContent = notice;
}

open().catch(showFailure);
