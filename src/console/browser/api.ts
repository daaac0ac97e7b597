import type { Account, Page, Quote } from "./records.ts";
import { listenToTabs, notifyTabs } from "./tabs.ts";

const TOKEN = "roost.token";
const NOTICE = "roost.notice";
const CALL_TIMEOUT_MS = 30_000;
const SIGN_OUT_TIMEOUT_MS = 5_000;
const TABS_TIMEOUT_MS = 250;

/** An error from the API, or why it could not be reached; with what a person can do about it. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly nextStep: string,
    /** For `payment_required`. */
    readonly quote: Quote | null = null,
    /** When to try again, if the server says so. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
  }
}

// Kept in memory, and in this tab's storage so that a reload stays signed in; nowhere else (docs/contract/security.md,
// HTTP). Other tabs of the browser ask this one for it.
let token = sessionStorage.getItem(TOKEN);
/** Resolves the wait for another tab's session; once nobody waits, a session that arrives reloads the page. */
let resolveJoin: (() => void) | undefined;
let mayJoin = false;

export const isSignedIn = (): boolean => token !== null;

/** Lets this tab answer others, and follow when they sign in or out. */
export function shareSession(): void {
  listenToTabs((message) => {
    switch (message.kind) {
      case "who is signed in":
        if (token !== null) notifyTabs({ kind: "session", token });
        break;
      case "session":
        if (token === null && mayJoin) join(message.token);
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

function hold(given: string): void {
  token = given;
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
export async function readSession(): Promise<Account | null> {
  if (token === null) return null;
  const answer = await ask(token, "GET", "/auth/me", undefined, AbortSignal.timeout(CALL_TIMEOUT_MS));
  if (answer.status === 401 || answer.status === 403) {
    forgetSession();
    return null;
  }
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as Account;
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
    const answer = await ask(ended, "POST", "/auth/sign-out", {}, AbortSignal.timeout(SIGN_OUT_TIMEOUT_MS));
    return answer.ok || answer.status === 401;
  } catch {
    return false;
  }
}

function forgetSession(): void {
  token = null;
  sessionStorage.clear();
}

/** Forgets the session and, by reloading, everything in memory; the reloaded page shows the notice. */
function endSession(notice: string): void {
  forgetSession();
  sessionStorage.setItem(NOTICE, notice);
  location.reload();
}

export function takeNotice(): string {
  const notice = sessionStorage.getItem(NOTICE) ?? "";
  sessionStorage.removeItem(NOTICE);
  return notice;
}

/** Calls the API and returns the response's body. Throws `ApiError`. */
export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  const answer = await open(method, path, body, AbortSignal.timeout(CALL_TIMEOUT_MS), headers);
  return (await answer.json()) as T;
}

/** Everything in a list of the API, a page at a time as it is read. `path` has a query. Throws `ApiError`. */
export async function* all<T>(path: string): AsyncGenerator<T, undefined> {
  for (let after = ""; ; ) {
    const page = await call<Page<T>>("GET", path + after);
    yield* page.data;
    if (page.nextCursor === null) return;
    after = `&after=${encodeURIComponent(page.nextCursor)}`;
  }
}

/** Calls the API without this tab's session, to sign in. Throws `ApiError`. */
export async function callSignedOut<T>(path: string, body: unknown): Promise<T> {
  const answer = await ask(null, "POST", path, body, AbortSignal.timeout(CALL_TIMEOUT_MS));
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as T;
}

/** Calls the API and returns the response unread. Throws `ApiError`. */
export async function open(
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
  headers: Record<string, string> = {},
): Promise<Response> {
  const answer = await ask(token, method, path, body, signal, headers);
  if (answer.ok) return answer;
  if (answer.status === 401 && token !== null) endSession("Your session has ended. Sign in again.");
  throw await refusal(answer);
}

async function ask(
  credential: string | null,
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
  more: Record<string, string> = {},
): Promise<Response> {
  const headers: Record<string, string> = { ...more };
  if (credential !== null) headers.Authorization = `Bearer ${credential}`;
  const isFile = body instanceof Blob;
  if (body !== undefined && !isFile) headers["Content-Type"] = "application/json";
  try {
    return await fetch(`/v1${path}`, {
      method,
      headers,
      body: isFile ? body : body === undefined ? null : JSON.stringify(body),
      credentials: "omit",
      signal,
    });
  } catch {
    throw unreachable();
  }
}

export const unreachable = (): ApiError =>
  new ApiError("unreachable", "the server does not answer", "Check that it is running, then try again.");

async function refusal(answer: Response): Promise<ApiError> {
  const envelope = await answer.json().catch(() => null);
  const { code = "unknown", message = `the server answered ${answer.status}`, requestId = "" } = envelope?.error ?? {};
  const wait = Number.parseInt(answer.headers.get("retry-after") ?? "", 10);
  const retryAfter = Number.isNaN(wait) ? null : wait;
  return new ApiError(code, message, nextStep(code, requestId), envelope?.x402 ?? null, retryAfter);
}

function nextStep(code: string, requestId: string): string {
  switch (code) {
    case "payment_required":
      return "Ask the operator of this host for credit, or top up under Account.";
    case "not_found":
      return "It may have been removed meanwhile. Reload the page to see what there is.";
    case "rate_limited":
      return "Wait a moment, then try again.";
    case "instance_not_ready":
      return "Start the instance, then send the message again.";
    case "model_error":
      return "On the host, roost doctor shows what is wrong with the model.";
    case "internal_error":
      return `The host's log has the details under request ${requestId}.`;
    default:
      return "";
  }
}
