import { AppError } from "../lib/app-error.ts";
import type { AccountRates } from "../limits/account-rates.ts";
import { addressKey } from "../limits/address.ts";
import type { Caller } from "../limits/caller.ts";
import { createFixedWindows } from "../limits/fixed-windows.ts";
import { costOfRequest, rateOfMethod } from "./bounds.ts";

export interface AdmissionParts {
  /** Who makes the request. Throws `unauthorized`, or `forbidden` for a suspended account. */
  authenticate(request: Request): Caller | Promise<Caller>;
  accountRates: AccountRates;
  addressOf(request: Request): string;
  /** Requests and refusals per minute of an address without a valid credential. */
  addressRequests: number;
  addressRefusals: number;
  /** Seconds of a monotonic clock. */
  now(): number;
}

/** Rate limits by address and account, checked before anything else (docs/contract/api.md, Conventions). */
export interface Admission {
  /** Authenticates and admits a request. Throws `rate_limited`, `unauthorized`, `forbidden`. */
  caller(request: Request): Caller | Promise<Caller>;
  /** Admits a request that another one of this caller's makes. Throws `rate_limited`. */
  inner(caller: Caller, method: string): void;
  /**
   * Admits a request to a public route; one with a valid credential still counts against its account. Throws
   * `rate_limited`. Null if it may proceed at once.
   */
  anybody(request: Request): null | Promise<null>;
  /**
   * Throws `rate_limited` for an address that was refused too often. Call it before anything that may refuse it again.
   */
  requireFewRefusals(address: string): void;
  /** Counts a refusal of an address: a wrong code, an unknown e-mail or invite, a bad token. */
  refused(address: string): void;
  /** Counts the answer of a page as further requests of its address: a client that does not read has the system keep it. */
  chargePage(request: Request, answerBytes: number): void;
  /** Charges a read for the bytes of its answer and the milliseconds that it took. */
  chargeRead(caller: Caller, answerBytes: number, ms: number): void;
  /** Charges a write for the bytes of its answer. */
  chargeWrite(caller: Caller, answerBytes: number): void;
}

const MINUTE = 60;
/** Of a page, for one request. */
const PAGE_BYTES = 64 * 1024;

const hasCredential = ({ headers }: Request): boolean =>
  headers.get("authorization") !== null || headers.get("x-api-key") !== null;

export function createAdmission(parts: AdmissionParts): Admission {
  const { authenticate, accountRates, addressOf, now } = parts;
  const requests = createFixedWindows(now, { seconds: MINUTE, max: parts.addressRequests });
  const refusals = createFixedWindows(now, { seconds: MINUTE, max: parts.addressRefusals });

  function requireWithin(wait: number, what: string): void {
    if (wait === 0) return;
    throw new AppError("rate_limited", `too many ${what} from this address; try again in ${Math.ceil(wait)} seconds`, {
      retryAfterSeconds: wait,
    });
  }
  const countRequest = (address: string) => requireWithin(requests.count(addressKey(address)), "requests");
  const requireFewRefusals = (address: string) => requireWithin(refusals.wait(addressKey(address)), "refused requests");

  function admit(caller: Caller, request: Request): Caller {
    accountRates.admit(caller.accountId, rateOfMethod(request.method), costOfRequest(request));
    return caller;
  }

  /**
   * Counts a request against its address if its credential is missing, invalid or a suspended account's. Throws the
   * error with which it was refused.
   */
  function refuse(request: Request, error: unknown): never {
    if (!(error instanceof AppError) || !(error.code === "unauthorized" || error.code === "forbidden")) throw error;
    const address = addressOf(request);
    countRequest(address);
    if (error.code === "unauthorized" && hasCredential(request)) {
      requireFewRefusals(address);
      refusals.count(addressKey(address));
    }
    throw error;
  }

  function caller(request: Request): Caller | Promise<Caller> {
    let known: Caller | Promise<Caller>;
    try {
      known = authenticate(request);
    } catch (error) {
      refuse(request, error);
    }
    if (!(known instanceof Promise)) return admit(known, request);
    return known.then(
      (caller) => admit(caller, request),
      (error: unknown) => refuse(request, error),
    );
  }

  async function withCredential(request: Request): Promise<null> {
    try {
      await caller(request);
    } catch (error) {
      if (error instanceof AppError && error.code === "rate_limited") throw error;
    }
    return null;
  }

  return {
    caller,
    inner: ({ accountId }, method) => accountRates.admit(accountId, rateOfMethod(method)),
    anybody(request) {
      if (hasCredential(request)) return withCredential(request);
      countRequest(addressOf(request));
      return null;
    },
    requireFewRefusals,
    refused: (address) => void refusals.count(addressKey(address)),
    chargePage(request, answerBytes) {
      const cost = Math.floor(answerBytes / PAGE_BYTES);
      if (cost > 0) requests.count(addressKey(addressOf(request)), cost);
    },
    chargeWrite: ({ accountId }, answerBytes) => accountRates.chargeWrite(accountId, answerBytes),
    chargeRead: ({ accountId }, answerBytes, ms) => accountRates.chargeRead(accountId, answerBytes, ms),
  };
}
