import type { PolicyPorts } from "../../src/tools/ports.ts";

/** What a decision about a call asks the host, of one whose owner has said nothing and where nothing is kept. */
export const policyPorts = (parts: Partial<PolicyPorts> = {}): PolicyPorts => ({
  policyOf: () => undefined,
  isRemembered: () => false,
  hasRoomToAsk: () => true,
  approved: () => null,
  redact: async (_, output) => output,
  keepOutput: () => Promise.reject(new Error("there is no workspace")),
  count() {},
  async noteChange() {},
  ...parts,
});
