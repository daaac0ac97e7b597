/** What happens to times that passed while the host did not run: the last of them runs, or none does. */
export const WHEN_MISSED = ["run_once", "skip"] as const;
/** Where a schedule's runs are: in a conversation of its own, or in the agent's default one. */
export const CONVERSATIONS = ["own", "default"] as const;
