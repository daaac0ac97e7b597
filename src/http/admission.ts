import type { Caller } from "../accounts/caller.ts";
import { AppError } from "../lib/app-error.ts";
import type { AccountRates } from "../limits/account-rates.ts";
import { addressKey } from "../limits/address.ts";
import { createFixedWindows } from "../limits/fixed-windows.ts";
import { costOfRequest, rateOfMethod } from "./bounds.ts";

export interface AdmissionParts {
  /** Who makes the request. Throws `unauthorized`, or `forbidden` for a suspended account. */
  authenticate(request: Request): Caller | Promise<Caller>;
  accountRates: AccountRates;
  addressOf(request: Request): string;
  /** Requests and refusals a minute of an address without a valid credential. */
  addressRequests: number;
  addressRefusals: number;
  /** Seconds of a clock that never steps. */
  now(): number;
}

/** Who may ask now: the limits of address and account, which are judged before anything else (api.md section 1). */
export interface Admission {
  /** The caller of a request that needs one. Throws `rate_limited`, `unauthorized`, `forbidden`. */
  caller(request: Request): Caller | Promise<Caller>;
  /**
   * Lets a request in that needs no credential; one with a valid credential counts against its account all the same.
   * Throws `rate_limited`. Null where it may go on at once.
   */
  anybody(request: Request): null | Promise<null>;
  /** Throws `rate_limited` for an address that was refused too often: to be asked just before it may be refused again. */
  requireFewRefusals(address: string): void;
  /** Notes that an address was refused: a wrong code, an unknown e-mail or invite, a bad token. */
  refused(address: string): void;
  /** What a read cost: the bytes of its answer, and the milliseconds that it took. */
  chargeRead(caller: Caller, answerBytes: number, ms: number): void;
  /** What a write cost: the bytes of its answer. */
  chargeWrite(caller: Caller, answerBytes: number): void;
}

const MINUTE = 60;

export const hasCredential = ({ headers }: Request): boolean =>
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
   * A request whose credential is not good, or is missing, or is a suspended account's, is its address's. Throws what it
   * was refused with.
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
    anybody(request) {
      if (hasCredential(request)) return withCredential(request);
      countRequest(addressOf(request));
      return null;
    },
    requireFewRefusals,
    refused: (address) => void refusals.count(addressKey(address)),
    chargeWrite: ({ accountId }, answerBytes) => accountRates.chargeWrite(accountId, answerBytes),
    chargeRead: ({ accountId }, answerBytes, ms) => accountRates.chargeRead(accountId, answerBytes, ms),
  };
}
