const TOKEN = "roost.token";
const NOTICE = "roost.notice";
const ANSWER_WITHIN_MS = 30_000;
const SIGN_OUT_WITHIN_MS = 5_000;

export interface Account {
  email: string;
  name: string;
  balance: string;
  currency: string;
  limits: { monthlyLimit: string | null; spentThisMonth: string };
}
export interface ApiKey {
  keyId: string;
  name: string | null;
  prefix: string;
  scopes: string[];
  createdAt: string;
  lastUsedAt: string | null;
}
export interface Instance {
  instanceId: string;
  name: string;
  status: string;
  statusReason: string | null;
  billing: { pricePerHour: string; currency: string };
}
export interface Agent {
  agentId: string;
  displayName: string;
}
export interface Message {
  role: "user" | "agent";
  message: string;
  finishReason: string | null;
}
/** What to pay, and where: one amount for every network. */
export interface Quote {
  amount: string;
  options: PayOption[];
}
export interface PayOption {
  network: string;
  recipient: string;
}
export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}

/** What the API refused, or why it could not be asked; with what a person can do about it. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly nextStep: string,
    /** Of `payment_required`. */
    readonly quote: Quote | null = null,
  ) {
    super(message);
  }
}

// In memory, and in this tab's storage so that a reload stays signed in; nowhere else (security.md, HTTP).
let token = sessionStorage.getItem(TOKEN);

export const isSignedIn = (): boolean => token !== null;

/** Holds this token from now on; the one before it, if any, is signed out. */
export function beginSession(given: string): void {
  const before = token;
  token = given;
  sessionStorage.setItem(TOKEN, given);
  if (before !== null) void endOnHost(before);
}

/** Whose session this tab holds; null without one, and for one that the host lets do nothing any more. */
export async function readSession(): Promise<Account | null> {
  if (token === null) return null;
  const answer = await ask(token, "GET", "/auth/me", undefined, AbortSignal.timeout(ANSWER_WITHIN_MS));
  if (answer.status === 401 || answer.status === 403) {
    forgetSession();
    return null;
  }
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as Account;
}

/** Ends the session here whatever happens, and on the host where it can be told. */
export async function signOut(): Promise<void> {
  const ended = token;
  forgetSession();
  const told = ended === null || (await endOnHost(ended));
  endSession(
    told ? "You are signed out." : "You are signed out here. The host could not be told: it ends by itself in a day.",
  );
}

/** False where the host did not hear it. A token that it no longer takes has ended before. */
async function endOnHost(ended: string): Promise<boolean> {
  try {
    const answer = await ask(ended, "POST", "/auth/sign-out", {}, AbortSignal.timeout(SIGN_OUT_WITHIN_MS));
    return answer.ok || answer.status === 401;
  } catch {
    return false;
  }
}

function forgetSession(): void {
  token = null;
  sessionStorage.clear();
}

/** Forgets the session and all that this page holds in memory; the notice is said by the page that loads next. */
export function endSession(notice: string): void {
  forgetSession();
  sessionStorage.setItem(NOTICE, notice);
  location.reload();
}

export function takeNotice(): string {
  const notice = sessionStorage.getItem(NOTICE) ?? "";
  sessionStorage.removeItem(NOTICE);
  return notice;
}

/** One call of the API and its answer. Throws `ApiError`. */
export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  const answer = await open(method, path, body, AbortSignal.timeout(ANSWER_WITHIN_MS), headers);
  return (await answer.json()) as T;
}

/** One call that has nothing to do with this tab's session: a way to sign in. Throws `ApiError`. */
export async function callSignedOut<T>(path: string, body: unknown): Promise<T> {
  const answer = await ask(null, "POST", path, body, AbortSignal.timeout(ANSWER_WITHIN_MS));
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as T;
}

/** One call of the API, its answer unread. Throws `ApiError`. */
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
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(`/v1${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "omit",
      signal,
    });
  } catch {
    throw unreachable();
  }
}

export const unreachable = (): ApiError =>
  new ApiError("unreachable", "the server does not answer", "See whether it still runs, then try again.");

async function refusal(answer: Response): Promise<ApiError> {
  const envelope = await answer.json().catch(() => null);
  const { code = "unknown", message = `the server answered ${answer.status}`, requestId = "" } = envelope?.error ?? {};
  return new ApiError(code, message, nextStep(code, requestId), envelope?.x402 ?? null);
}

function nextStep(code: string, requestId: string): string {
  switch (code) {
    case "payment_required":
      return "Top up on this page, or let the host's operator add credit: roost account credit EMAIL AMOUNT --note TEXT";
    case "invite_required":
      return "New here? The host's operator makes an invite code: roost invite create";
    case "instance_not_ready":
      return "Start the instance, then send it again.";
    case "model_error":
      return "On the host, roost doctor says what is wrong with the model.";
    case "internal_error":
      return `In the host's log: request ${requestId}`;
    default:
      return "";
  }
}
