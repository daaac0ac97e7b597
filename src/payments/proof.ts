import { NETWORK_NAMES, type NetworkName } from "../chain/networks.ts";
import { AppError } from "../lib/app-error.ts";

/** A transaction presented as a payment. */
export interface Proof {
  network: NetworkName;
  /** In lower case. */
  txHash: string;
}

const HASH = /^0x[0-9a-f]{64}$/i;
const EXAMPLE = `{"txHash":"0x…64 hex digits","network":"${NETWORK_NAMES.join("|")}"}`;

/** Whether a request proves a transfer already made; other payments are made only when taken. */
export const hasProof = (headers: Headers): boolean => headers.get("x-payment")?.startsWith("{") ?? false;

/** Reads the `X-PAYMENT` header (docs/contract/api.md, Payments). Throws `invalid_request` if it is malformed. */
export function parseProof(header: string, networks: readonly NetworkName[]): Proof {
  const { txHash, network } = parseObject(header);
  if (typeof txHash !== "string" || !HASH.test(txHash)) throw malformed("txHash: expected 0x and 64 hex digits");
  const configured = networks.find((name) => name === network);
  if (configured === undefined) throw malformed(`network: expected one of ${networks.join(", ")}`);
  return { network: configured, txHash: txHash.toLowerCase() };
}

function parseObject(header: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(header);
  } catch {
    throw malformed(`expected JSON such as ${EXAMPLE}`);
  }
  if (typeof value !== "object" || value === null) throw malformed(`expected a JSON object such as ${EXAMPLE}`);
  return value as Record<string, unknown>;
}

const malformed = (expected: string): AppError =>
  new AppError("invalid_request", `X-PAYMENT: ${expected}`, { isKept: false });
