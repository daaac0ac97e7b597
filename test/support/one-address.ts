/**
 * Limits per address that are high enough for tests, in which all clients have the same address. A test of those limits
 * sets its own.
 */
export const ONE_ADDRESS = { ROOST_ADDRESS_REQUESTS: "1000000", ROOST_ADDRESS_REFUSALS: "1000000" };
