/** What a person has planned, or the agent's own look after its duties. */
export const KINDS = ["schedule", "heartbeat"] as const;
/** What happens to times that passed while the host did not run: the last of them runs, or none does. */
export const WHEN_MISSED = ["run_once", "skip"] as const;
/** Where a schedule's runs are: in a conversation of its own, or in the agent's default one. */
export const CONVERSATIONS = ["own", "default"] as const;
