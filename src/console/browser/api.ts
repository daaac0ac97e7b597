const TOKEN = "roost.token";
const NOTICE = "roost.notice";
const ANSWER_WITHIN_MS = 30_000;

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

export function beginSession(given: string): void {
  token = given;
  sessionStorage.setItem(TOKEN, given);
}

export function forgetSession(): void {
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

/** One call of the API, its answer unread. Throws `ApiError`. */
export async function open(
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
  more: Record<string, string> = {},
): Promise<Response> {
  const headers: Record<string, string> = { ...more };
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(`/v1${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "omit",
      signal,
    });
  } catch {
    throw unreachable();
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && token !== null) endSession("Your session has ended. Sign in again.");
  throw await refusal(answer);
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
      return "Top up on this page, or let the host's operator add credit: roost account credit EMAIL AMOUNT";
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
