import { type components, createRoost, type Roost, RoostError } from "../../../clients/typescript/src/index.ts";
import { listenToTabs, notifyTabs } from "./tabs.ts";

const TOKEN = "roost.token";
const NOTICE = "roost.notice";
const SIGN_OUT_TIMEOUT_MS = 5_000;
const TABS_TIMEOUT_MS = 250;

/** The records of the API, by name. */
export type Records = components["schemas"];

/** A client of this page's server. What fails is shown to a person, who can try again. */
const clientFor = (credential: string | null): Roost => createRoost({ url: "", credential, retries: 0 });

/** The API as this tab's session. It ends when the server no longer accepts its token. */
export const roost = createRoost({
  url: "",
  credential: () => token,
  retries: 0,
  async fetch(url, init) {
    const asked = token;
    const answer = await fetch(url, init);
    if (answer.status === 503 && init?.method === "POST") refused();
    if (answer.status !== 401 || asked === null) return answer;
    // Read before the page is left, which would cut it off: whoever has asked then keeps what could not be sent.
    const body = await answer.text();
    setTimeout(() => token === asked && endSession("Your session has ended. Sign in again.", keepDrafts));
    return new Response(body, answer);
  },
});

let refused = (): void => undefined;

/** Calls this when what was asked for cannot be done now: its instance may have been stopped elsewhere. */
export function whenRefused(listener: typeof refused): void {
  refused = listener;
}

/** The API without a session, to sign in. */
export const stranger = clientFor(null);

// Kept in memory, and in this tab's storage so that a reload stays signed in; nowhere else (docs/contract/security.md,
// HTTP). Other tabs of the browser ask this one for it.
let token = sessionStorage.getItem(TOKEN);
/** Resolves the wait for another tab's session; once nobody waits, a session that arrives reloads the page. */
let resolveJoin: (() => void) | undefined;
let mayJoin = false;
/** The account of the session that this page shows. */
let owner: string | null = null;
/** Whether somebody has ended the session. */
let isEnded = false;

export const isSignedIn = (): boolean => token !== null;

/** Lets this tab answer others, and follow when they sign in or out. */
export function shareSession(): void {
  listenToTabs((message) => {
    switch (message.kind) {
      case "who is signed in":
        if (token !== null) notifyTabs({ kind: "session", token });
        break;
      case "session":
        if (token !== null) break;
        if (owner !== null) void resume(message.token, owner).catch(() => undefined);
        else if (mayJoin) join(message.token);
        break;
      case "ended":
        if (message.token === token) endSession("You are signed out: this session was ended in another tab.");
        break;
    }
  });
}

/**
 * Joins the session of another tab, now or whenever one starts. Tabs without a session do not answer, so this waits for
 * a short timeout if there is none.
 */
export async function joinSession(): Promise<void> {
  if (token !== null) return;
  mayJoin = true;
  const answer = new Promise<void>((resolve) => {
    resolveJoin = resolve;
    setTimeout(resolve, TABS_TIMEOUT_MS);
  });
  notifyTabs({ kind: "who is signed in" });
  await answer;
  resolveJoin = undefined;
}

function join(given: string): void {
  hold(given);
  if (resolveJoin) resolveJoin();
  else location.reload();
}

/** Tells whose session this page shows: if it ends by itself while something is written, that account's next one goes on. */
export function showsAccount(accountId: string): void {
  owner = accountId;
}

async function resume(given: string, accountId: string): Promise<void> {
  const account = await clientFor(given).get("/v1/auth/me");
  if (token !== null || isEnded || account.accountId !== accountId) return;
  hold(given);
  sessionStorage.removeItem(NOTICE);
}

function hold(given: string): void {
  token = given;
  isEnded = false;
  sessionStorage.setItem(TOKEN, given);
}

/** Uses this token from now on. The previous one, if any, is signed out in every tab. */
export function beginSession(given: string): void {
  const before = token;
  hold(given);
  if (before === null) notifyTabs({ kind: "session", token: given });
  else void endEverywhere(before);
}

/** The account of this tab's session; null if there is no session, or it is no longer valid. */
export async function readSession(): Promise<Records["Account"] | null> {
  if (token === null) return null;
  try {
    return await clientFor(token).get("/v1/auth/me");
  } catch (error) {
    if (!(error instanceof RoostError) || !(error.status === 401 || error.status === 403)) throw error;
    if (error.status === 401) keepDrafts();
    else forgetSession();
    return null;
  }
}

/** Ends the session in all tabs in any case, and on the server if it can be reached. */
export async function signOut(): Promise<void> {
  const ended = token;
  forgetSession();
  const reached = ended === null || (await endEverywhere(ended));
  endSession(
    reached
      ? "You are signed out."
      : "You are signed out here. The server could not be reached: there, the session ends within a day.",
  );
}

/** False if the server could not be reached. A token that it no longer accepts has ended already. */
async function endEverywhere(ended: string): Promise<boolean> {
  notifyTabs({ kind: "ended", token: ended });
  try {
    await clientFor(ended).post("/v1/auth/sign-out", { deadlineMs: SIGN_OUT_TIMEOUT_MS });
    return true;
  } catch (error) {
    return error instanceof RoostError && error.status === 401;
  }
}

function forgetSession(): void {
  token = null;
  isEnded = true;
  sessionStorage.clear();
}

/** Forgets a session that has ended by itself, but not what was written in it. */
function keepDrafts(): void {
  token = null;
  sessionStorage.removeItem(TOKEN);
}

/**
 * Asks before the page is left while something is not saved: who stays where the session has ended by itself can copy it.
 * Where somebody has ended the session, nobody may stay.
 */
export function askBeforeLeaving(isUnsaved: () => boolean): void {
  addEventListener("beforeunload", (event) => {
    if (!isEnded && isUnsaved()) event.preventDefault();
  });
}

/** Forgets the session and, by reloading, everything in memory; the reloaded page shows the notice. */
export function endSession(notice: string, forget = forgetSession): void {
  forget();
  sessionStorage.setItem(NOTICE, notice);
  location.reload();
}

export function takeNotice(): string {
  const notice = sessionStorage.getItem(NOTICE) ?? "";
  sessionStorage.removeItem(NOTICE);
  return notice;
}
