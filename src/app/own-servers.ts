import { asFetch } from "../egress/as-fetch.ts";
import type { Egress } from "../egress/egress.ts";
import { EgressError, type EgressFault } from "../egress/refusal.ts";
import { ModelError } from "../models/engine.ts";
import { OWN_SERVER_SECRETS, type OwnServers } from "../models/own-server.ts";
import type { Secrets } from "../secrets/secrets.ts";
import type { Store } from "../storage/store.ts";

/** No second try would end otherwise. */
const FINAL: ReadonlySet<EgressFault> = new Set(["url", "policy", "address", "tls"]);

/** The model servers that instances bring as secrets (docs/contract/api.md, Models), reached as agents reach anything. */
export function createOwnServers(
  store: Pick<Store, "commitSoon" | "oncePerSnapshot">,
  secrets: Pick<Secrets, "read" | "changedAt">,
  accountOf: (instanceId: string) => string,
  egress: Pick<Egress, "open">,
): OwnServers {
  const { url, key } = OWN_SERVER_SECRETS;
  return {
    // Several rooms ask for each message, mostly of instances that bring none.
    versionOf: store.oncePerSnapshot((instanceId) => {
      const changedAt = secrets.changedAt(instanceId, url);
      return changedAt === undefined ? null : `${changedAt} ${secrets.changedAt(instanceId, key) ?? ""}`;
    }),
    read(instanceId) {
      const readBoth = () => {
        const baseUrl = secrets.read(instanceId, url)?.trim() ?? "";
        return { baseUrl, apiKey: secrets.read(instanceId, key)?.trim() };
      };
      return store.commitSoon(readBoth, "full", accountOf(instanceId));
    },
    fetchFor(accountId, instanceId) {
      const guarded = asFetch(egress, { accountId, instanceId });
      return (address, init, runId) =>
        guarded(address, init as RequestInit, runId).catch((error: unknown) => {
          if (!(error instanceof EgressError && FINAL.has(error.fault))) throw error;
          throw new ModelError("rejected", `The model server of this instance cannot be used: ${error.message}.`);
        });
    },
  };
}
