import { type Address, NETWORKS, type NetworkName } from "../../chain/networks.ts";
import type { Micros } from "../../lib/money.ts";
import type { FacilitatorRequest, Kind } from "./facilitator.ts";

/**
 * The x402 protocol's own words, versions 1 and 2, of its scheme `exact` on EVM chains: the payer signs a transfer of
 * USDC (EIP-3009) and a facilitator sends it. Read against x402 1.2.0 and @x402/core 2.27.0.
 */
export type Version = 1 | 2;

/** Exactly this, each time: @x402/fetch refuses to pay more unless it is told otherwise (billing.md, x402 7). */
export const ASKED: Micros = 1_000_000n;
/** For how long a payer's signature is to hold: time enough to verify, to settle and to be mined. */
export const HOLDS_SECONDS = 300;

/** As each version names a network; null where it has no name for it. x402-fetch throws at a name it does not know. */
export const NAMES: Record<Version, Record<NetworkName, string | null>> = {
  1: { base: "base", ethereum: null, polygon: "polygon" },
  2: { base: "eip155:8453", ethereum: "eip155:1", polygon: "eip155:137" },
};
export const namesOf = (network: NetworkName): string[] =>
  [NAMES[1][network], NAMES[2][network]].filter((name) => name !== null);

export const REQUEST_HEADERS: Record<Version, string> = { 1: "X-PAYMENT", 2: "PAYMENT-SIGNATURE" };
const RESPONSE_HEADERS: Record<Version, string> = { 1: "X-PAYMENT-RESPONSE", 2: "PAYMENT-RESPONSE" };

/** To whom, and for what: the account's balance, whichever request found it too low. */
export interface Offer {
  recipient: Address;
  /** A URL. */
  resource: string;
}

const DESCRIPTION = "1.00 USDC for the balance of the account";
const MIME_TYPE = "application/json";

/** What a payment must be, as `version` writes it; null where that version has no name for the network. */
function requirementOf(version: Version, network: NetworkName, { recipient, resource }: Offer) {
  const name = NAMES[version][network];
  if (name === null) return null;
  const shared = {
    scheme: "exact",
    network: name,
    payTo: recipient,
    asset: NETWORKS[network].asset,
    maxTimeoutSeconds: HOLDS_SECONDS,
    // The domain of the signature: USDC's own name and version, the same on the three networks.
    extra: { name: "USD Coin", version: "2" },
  };
  return version === 1
    ? { ...shared, maxAmountRequired: String(ASKED), resource, description: DESCRIPTION, mimeType: MIME_TYPE }
    : { ...shared, amount: String(ASKED) };
}

/** What a 402 adds for clients of either version: members of the body, and a header. */
export interface Advertisement {
  body: Record<string, unknown>;
  headers: Record<string, string>;
}

export const NOTHING_ADVERTISED: Advertisement = { body: {}, headers: {} };

/** Offers the networks that the facilitator settles, version by version. `reason`: why it is a 402, in ASCII. */
export function advertise(
  networks: readonly NetworkName[],
  kinds: readonly Kind[],
  offer: Offer,
  reason: string,
): Advertisement {
  const settles = (version: Version, scheme: string, network: string) =>
    kinds.some((kind) => kind.x402Version === version && kind.scheme === scheme && kind.network === network);
  const accepts = (version: Version) =>
    networks
      .map((network) => requirementOf(version, network, offer))
      .filter((requirement) => requirement !== null)
      .filter(({ scheme, network }) => settles(version, scheme, network));
  const [first, second] = [accepts(1), accepts(2)];
  const resource = { url: offer.resource, description: DESCRIPTION, mimeType: MIME_TYPE };
  const required = { x402Version: 2, error: reason, resource, accepts: second };
  return {
    body: first.length === 0 ? {} : { x402Version: 1, accepts: first },
    headers: second.length === 0 ? {} : { "PAYMENT-REQUIRED": encode(required) },
  };
}

/** What of a signed payment its facilitator and its payer are told. */
interface Signed {
  version: Version;
  network: NetworkName;
  payload: { authorization: { from: string } };
}

/** The payment as a facilitator is told of it: what it is to do, and of the payer's words those that he signed. */
export function facilitatorRequest({ version, network, payload }: Signed, offer: Offer): FacilitatorRequest {
  const requirement = requirementOf(version, network, offer);
  if (requirement === null) throw new Error(`version ${version} of x402 has no name for ${network}`);
  const { scheme, network: name } = requirement;
  const paymentPayload =
    version === 1
      ? { x402Version: 1, scheme, network: name, payload }
      : { x402Version: 2, resource: { url: offer.resource }, accepted: requirement, payload };
  return { x402Version: version, paymentPayload, paymentRequirements: requirement };
}

/** The header of the answer to a request that paid. */
export function paidHeaders({ version, network, payload }: Signed, txHash: string): Record<string, string> {
  const { from } = payload.authorization;
  const told = { success: true, transaction: txHash, network: NAMES[version][network], payer: from };
  return { [RESPONSE_HEADERS[version]]: encode(told) };
}

/** The protocol's clients decode it as Latin-1: what goes in is ASCII. */
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
