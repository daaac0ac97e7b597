import { EgressError } from "../egress/refusal.ts";
import { isNamedBy, shownHost, type Target } from "../egress/target.ts";
import type { FairTurns } from "../limits/fair-turns.ts";
import type { Store } from "../storage/store.ts";
import { PLACEHOLDER, PLACEHOLDER_START, type Place, type SecretBroker } from "../tools/secret-broker.ts";
import { canBeHidden, MIN_HIDDEN_LENGTH } from "./needles.ts";
import { createRedactors } from "./redactors.ts";
import type { Secrets } from "./secrets.ts";

export interface BrokerParts {
  store: Pick<Store, "commitSoon">;
  secrets: Pick<Secrets, "read" | "values" | "version">;
  accountOf(instanceId: string): string;
  /** What the installed skills of an instance declare together: hosts, and by secret those that it may be sent to. */
  requirementsOf(instanceId: string): {
    hosts: ReadonlySet<string>;
    secrets: ReadonlyMap<string, ReadonlySet<string>>;
  };
  /** Whether the operator names this host: only there may a secret go without encryption. */
  isNamed(target: Target): boolean;
  /** Of what is done in slices. */
  turns: FairTurns;
}

export interface Broker extends SecretBroker {
  /** The same for many texts, by the secrets as they are now. */
  redactor(instanceId: string): Promise<(text: string) => Promise<string>>;
}

/** What agents may do with secrets (docs/contract/security.md, Secrets). */
export function createBroker({ store, secrets, accountOf, requirementsOf, isNamed, turns }: BrokerParts): Broker {
  function requireDeclared(instanceId: string, name: string, target: Target): void {
    const hosts = [...(requirementsOf(instanceId).secrets.get(name) ?? [])];
    if (!hosts.some((host) => isNamedBy(host, target))) {
      const known =
        hosts.length > 0
          ? `the skill that requires it declares ${hosts.join(", ")}`
          : "no installed skill declares it together with a host";
      throw new EgressError("policy", `the secret ${name} may not be sent to ${shownHost(target)}: ${known}`);
    }
  }

  function requireSafe(name: string, target: Target): void {
    if (!target.secure && !isNamed(target)) {
      throw new EgressError(
        "policy",
        `the secret ${name} may not be sent without encryption: use https://${target.host}`,
      );
    }
  }

  /** The value; what the audit log takes of its use is on disk before it leaves the host. */
  async function read(instanceId: string, name: string): Promise<string> {
    const value = await store.commitSoon(() => secrets.read(instanceId, name), "full", accountOf(instanceId));
    if (value === undefined)
      throw new EgressError("secret", `this instance has no secret ${name}: ask its owner to store it`);
    if (!canBeHidden(value)) {
      throw new EgressError(
        "secret",
        `the secret ${name} has fewer than ${MIN_HIDDEN_LENGTH} characters: it could not be hidden in an answer`,
      );
    }
    return value;
  }

  type Texts = Parameters<SecretBroker["fill"]>[2];

  async function fill(instanceId: string, texts: Texts, requireAllowed: (name: string) => void): Promise<string[]> {
    for (const [, text] of texts) requireWellFormed(text);
    const names = new Set(texts.flatMap(([, text]) => [...text.matchAll(PLACEHOLDER)].map(([, name = ""]) => name)));
    for (const name of names) requireAllowed(name);
    const values = new Map<string, string>();
    for (const name of names) values.set(name, await read(instanceId, name));
    return texts.map(([place, text]) =>
      text.replace(PLACEHOLDER, (_, name: string) => written(place, name, values.get(name) ?? "")),
    );
  }

  const { redactor } = createRedactors({ secrets, accountOf, turns });

  return {
    declares: (instanceId, target) => [...requirementsOf(instanceId).hosts].some((host) => isNamedBy(host, target)),
    fill: (instanceId, target, texts) =>
      fill(instanceId, texts, (name) => {
        requireDeclared(instanceId, name, target);
        requireSafe(name, target);
      }),
    fillFor: (instanceId, target, texts) => fill(instanceId, texts, (name) => requireSafe(name, target)),
    redact: async (instanceId, text, most) => (await redactor(instanceId))(text, most),
    redactor,
  };
}

/** A malformed placeholder would be sent as it stands, and nobody would know why the request fails. */
function requireWellFormed(text: string): void {
  if ([...text.matchAll(PLACEHOLDER_START)].length === [...text.matchAll(PLACEHOLDER)].length) return;
  throw new EgressError(
    "secret",
    "a placeholder is not of the form {{secret:NAME}}, with a name of letters, digits and _",
  );
}

/** Writes a value so that it stays one value: it adds no header, parameter or member. */
function written(place: Place, name: string, value: string): string {
  switch (place) {
    case "header": {
      // A line break at the end comes from a file or a pipe, and belongs to no credential.
      const text = value.trim();
      if (/^[\x20-\x7e]+$/.test(text)) return text;
      throw new EgressError(
        "secret",
        `the secret ${name} has a line break, or a character other than ASCII: a header cannot carry it`,
      );
    }
    case "query":
    case "form":
      return encodeURIComponent(value);
    case "json":
      return JSON.stringify(value).slice(1, -1);
    case "text":
      return value;
  }
}
