/** What went wrong with an outgoing request. The names are label values of a metric: a fixed set. */
const EGRESS_FAULTS = [
  "url",
  "policy",
  "secret",
  "address",
  "dns",
  "connect",
  "tls",
  "broken",
  "protocol",
  "size",
  "redirect",
  "deadline",
  "busy",
  "cancelled",
] as const;
export type EgressFault = (typeof EGRESS_FAULTS)[number];

/** A request that was refused, or that failed. Its message goes to the model: what was wrong, and what to do. */
export class EgressError extends Error {
  readonly fault: EgressFault;
  constructor(fault: EgressFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EgressError";
    this.fault = fault;
  }
}

/** Refused by this host's rules, rather than failed on the way: worth a row in the audit log. */
export const isRefusal = (fault: EgressFault): boolean => fault === "policy" || fault === "address";
