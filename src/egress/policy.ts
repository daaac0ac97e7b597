import type { AddressKind } from "./address.ts";
import { EgressError } from "./refusal.ts";
import { isNamedBy, shownHost, type Target } from "./target.ts";

/** `ROOST_EGRESS` (docs/contract/security.md, Requests of agents). In a list, `public` stands for the internet. */
export type EgressSetting = "none" | "public" | readonly string[];

export interface EgressPolicy {
  /** Whether the operator names this host. */
  names(target: Target): boolean;
  /** Throws `EgressError` for a host that may not be asked, whatever its address. */
  requirePermitted(target: Target): void;
  /** Throws `EgressError` if one of a host's addresses may not be reached. */
  requireReachable(target: Target, addresses: readonly string[], kindOf: (address: string) => AddressKind): void;
}

export function createEgressPolicy(setting: EgressSetting): EgressPolicy {
  const entries = setting === "none" ? [] : typeof setting === "string" ? [setting] : setting;
  const isOpen = entries.includes("public");
  const hosts = entries.filter((entry) => entry !== "public");
  const names = (target: Target) => hosts.some((entry) => isNamedBy(entry, target));
  return {
    names,
    requirePermitted(target) {
      if (isOpen || names(target)) return;
      const why =
        setting === "none" ? "agents of this host may reach nothing" : `agents may not reach ${shownHost(target)}`;
      throw new EgressError("policy", `${why}; the operator decides by ROOST_EGRESS`);
    },
    requireReachable(target, addresses, kindOf) {
      const named = names(target);
      // One bad address condemns the name: a half-public answer is how rebinding starts.
      for (const kind of addresses.map(kindOf)) {
        if (kind === "public" || (kind === "private" && named)) continue;
        const mend = kind === "private" ? `; the operator may name ${shownHost(target)} in ROOST_EGRESS` : "";
        throw new EgressError("address", `${shownHost(target)} has an address that is not public${mend}`);
      }
    },
  };
}
