import { type Address, NETWORKS, type NetworkName } from "../../chain/networks.ts";
import type { Micros } from "../../lib/money.ts";
import type { FacilitatorRequest, Kind } from "./facilitator.ts";

/**
 * Versions 1 and 2 of the x402 protocol, scheme `exact` on EVM chains: the payer signs a USDC transfer (EIP-3009) and a
 * facilitator submits it. Checked against x402 1.2.0 and @x402/core 2.27.0.
 */
export type Version = 1 | 2;

/**
 * Always exactly this amount: by default @x402/fetch refuses to pay more (docs/contract/billing.md, Clients of the x402
 * protocol).
 */
export const ASKED: Micros = 1_000_000n;
/** How long a payer's signature must be valid: enough to verify it, settle it and have it mined. */
export const HOLDS_SECONDS = 300;

/** Each version's name for a network; null if it has none. x402-fetch throws at a name it does not know. */
export const NAMES: Record<Version, Record<NetworkName, string | null>> = {
  1: { base: "base", ethereum: null, polygon: "polygon" },
  2: { base: "eip155:8453", ethereum: "eip155:1", polygon: "eip155:137" },
};
export const namesOf = (network: NetworkName): string[] =>
  [NAMES[1][network], NAMES[2][network]].filter((name) => name !== null);

export const REQUEST_HEADERS: Record<Version, string> = { 1: "X-PAYMENT", 2: "PAYMENT-SIGNATURE" };
const RESPONSE_HEADERS: Record<Version, string> = { 1: "X-PAYMENT-RESPONSE", 2: "PAYMENT-RESPONSE" };

/** Whom to pay, and for what: always the account's balance, whichever request found it too low. */
export interface Offer {
  recipient: Address;
  /** A URL. */
  resource: string;
}

const DESCRIPTION = "1.00 USDC for the balance of the account";
const MIME_TYPE = "application/json";

/** The payment requirement, as `version` writes it; null if that version has no name for the network. */
function requirementOf(version: Version, network: NetworkName, { recipient, resource }: Offer) {
  const name = NAMES[version][network];
  if (name === null) return null;
  const shared = {
    scheme: "exact",
    network: name,
    payTo: recipient,
    asset: NETWORKS[network].asset,
    maxTimeoutSeconds: HOLDS_SECONDS,
    // The signature's EIP-712 domain: USDC's name and version, the same on all three networks.
    extra: { name: "USD Coin", version: "2" },
  };
  return version === 1
    ? { ...shared, maxAmountRequired: String(ASKED), resource, description: DESCRIPTION, mimeType: MIME_TYPE }
    : { ...shared, amount: String(ASKED) };
}

/** What a 402 adds for x402 clients: members of the body for version 1, a header for version 2. */
export interface Advertisement {
  body: Record<string, unknown>;
  headers: Record<string, string>;
  /** What to say of it in the 402's message; empty if nothing. */
  hint: string;
}

export const NOTHING_ADVERTISED: Advertisement = { body: {}, headers: {}, hint: "" };

/** Offers the networks that the facilitator supports, for each version. `reason` explains the 402, in ASCII. */
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
    hint: "",
  };
}

/** The parts of a signed payment that go to the facilitator and back to the payer. */
interface Signed {
  version: Version;
  network: NetworkName;
  payload: { authorization: { from: string } };
}

/** The request to the facilitator: this host's requirement, and from the payer only what was signed. */
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
  const receipt = { success: true, transaction: txHash, network: NAMES[version][network], payer: from };
  return { [RESPONSE_HEADERS[version]]: encode(receipt) };
}

/** Must be given ASCII: x402 clients decode it as Latin-1. */
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
