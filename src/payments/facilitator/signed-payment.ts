import { z } from "zod";
import { type Address, NETWORK_NAMES, NETWORKS, type NetworkName } from "../../chain/networks.ts";
import { AppError } from "../../lib/app-error.ts";
import { ASKED, HOLDS_SECONDS, NAMES, REQUEST_HEADERS, type Version } from "./x402-protocol.ts";

/** How far a payer's clock may be off; x402-fetch backdates its signatures by as much. */
const CLOCK_SKEW_SECONDS = 600;
/** A signature must be valid for this much longer when it is passed on; facilitators ask for three blocks. */
const MIN_REMAINING_SECONDS = 10;
const MAX_HEADER_LENGTH = 8_192;

const integer = () => z.string().regex(/^\d{1,30}$/);
const address = () => z.string().regex(/^0x[0-9a-fA-F]{40}$/);
const payload = z.lazy(() =>
  z.object({
    signature: z.string().regex(/^0x(?:[0-9a-fA-F]{2}){1,2048}$/),
    authorization: z.object({
      from: address(),
      to: address(),
      value: integer(),
      validAfter: integer(),
      validBefore: integer(),
      nonce: z.string().regex(/^0x[0-9a-fA-F]{64}$/),
    }),
  }),
);
const FORMS = {
  1: z.lazy(() => z.object({ x402Version: z.literal(1), scheme: z.string(), network: z.string(), payload })),
  2: z.lazy(() => z.object({ x402Version: z.literal(2), accepted: accepted(), payload })),
};
const accepted = () =>
  z.object({ scheme: z.string(), network: z.string(), asset: address(), payTo: address(), amount: integer() });

/** A transfer that the payer has signed and nobody has submitted yet. */
export interface SignedPayment {
  version: Version;
  scheme: string;
  network: NetworkName;
  /** The requirement that the payer accepted; version 1 does not repeat it. */
  accepted: { asset: string; payTo: string; amount: string } | null;
  payload: z.infer<typeof payload>;
}

/**
 * A request's signed payment, in either version; null if it has none. An `X-PAYMENT` that starts with `{` is a proof of
 * a transfer already made (proof.ts). Throws `invalid_request` for two payments.
 */
export function signedPaymentHeader(headers: Headers): { version: Version; header: string } | null {
  const first = headers.get(REQUEST_HEADERS[1]);
  const second = headers.get(REQUEST_HEADERS[2]);
  if (second !== null) {
    if (first !== null) throw malformed(2, `no ${REQUEST_HEADERS[1]} beside it`);
    return { version: 2, header: second };
  }
  return first === null || first === "" || first.startsWith("{") ? null : { version: 1, header: first };
}

/** Reads the header of `version`, for a payment on any network; null if it is malformed. */
export function readSignedPayment(version: Version, header: string): SignedPayment | null {
  const read = FORMS[version].safeParse(header.length <= MAX_HEADER_LENGTH ? decode(header) : null);
  if (!read.success) return null;
  const { data } = read;
  const { scheme, network: name } = data.x402Version === 1 ? data : data.accepted;
  const network = NETWORK_NAMES.find((candidate) => NAMES[version][candidate] === name);
  if (network === undefined) return null;
  const accepted = data.x402Version === 1 ? null : data.accepted;
  return { version, scheme, network, accepted, payload: data.payload };
}

/**
 * The `invalid_request` for what a host does not take as a signed payment. It takes those on `networks`; none if that is
 * null.
 */
export function notTaken(version: Version, networks: readonly NetworkName[] | null): AppError {
  if (networks === null) {
    const instead = 'a transfer that was made, as {"txHash":"0x…","network":"…"} in X-PAYMENT';
    return malformed(version, `${instead}; this host has no facilitator for signed payments`);
  }
  const names = networks.flatMap((network) => NAMES[version][network] ?? []);
  const on = names.length === 0 ? "" : ` on ${names.join(" or ")}`;
  return malformed(
    version,
    `a payment of x402 version ${version}${on}: base64 of its JSON, with a signed authorization`,
  );
}

const malformed = (version: Version, expected: string): AppError =>
  new AppError("invalid_request", `${REQUEST_HEADERS[version]}: expected ${expected}`, { isKept: false });

function decode(base64: string): unknown {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null;
  try {
    return JSON.parse(Buffer.from(base64, "base64").toString("utf8"));
  } catch {
    return null;
  }
}

/** Why a signed payment is refused, for the payer to read; null if it is acceptable. `now` in milliseconds. */
export function refusalOf(payment: SignedPayment, recipient: Address, now: number): string | null {
  const { scheme, network, accepted } = payment;
  const { to, value, validAfter, validBefore } = payment.payload.authorization;
  const seconds = BigInt(Math.floor(now / 1000));
  if (scheme !== "exact") return "the payment's scheme is not exact";
  if (accepted !== null && !isSame(accepted.asset, NETWORKS[network].asset)) return "the payment is not in USDC";
  if (!isSame(to, recipient) || (accepted !== null && !isSame(accepted.payTo, recipient))) {
    return "the payment goes to another recipient";
  }
  if (BigInt(value) !== ASKED || (accepted !== null && BigInt(accepted.amount) !== ASKED)) {
    return "the payment is not of the amount that is asked for";
  }
  if (BigInt(validAfter) > seconds) return "the payment is not valid yet";
  if (BigInt(validBefore) < seconds + BigInt(MIN_REMAINING_SECONDS)) return "the payment has expired";
  if (BigInt(validBefore) > seconds + BigInt(HOLDS_SECONDS + CLOCK_SKEW_SECONDS)) {
    return `the payment is valid for longer than the ${HOLDS_SECONDS} seconds that are asked for`;
  }
  return null;
}

const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
