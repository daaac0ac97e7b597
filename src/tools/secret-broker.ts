import type { Target } from "../egress/target.ts";

/** Where in a request a text stands: it decides how a value is written there. */
export type Place = "header" | "query" | "json" | "form" | "text";

/**
 * Puts the values of secrets into what leaves the host. An agent only ever writes their names, as `{{secret:NAME}}`.
 */
export interface SecretBroker {
  /**
   * The texts with each placeholder replaced. Throws `EgressError` for a secret that the instance lacks, or
   * that may not go to this target: each skill declares the hosts of its secrets.
   */
  fill(instanceId: string, target: Target, texts: readonly [place: Place, text: string][]): Promise<string[]>;
  /** The same for headers that the instance's owner has written for this target alone. */
  fillFor(instanceId: string, target: Target, texts: readonly [place: Place, text: string][]): Promise<string[]>;
  /** Whether a skill of the instance declares this host. */
  declares(instanceId: string, target: Target): boolean;
  /**
   * The text without any value of the instance's secrets; of a longer one, its first `most` characters, and no part of a
   * value that goes on behind them.
   */
  redact(instanceId: string, text: string, most?: number): Promise<string>;
}

/** `{{secret:NAME}}`, with spaces where people put them, also as they are in URLs. */
export const PLACEHOLDER =
  /(?:\{|%7b){2}(?:\s|%20)*secret:(?:\s|%20)*([a-z_][a-z0-9_]{0,127})(?:\s|%20)*(?:\}|%7d){2}/gi;
/** What begins like one: should it not be one, it is a mistake. */
export const PLACEHOLDER_START = /(?:\{|%7b){2}(?:\s|%20)*secret:/gi;
