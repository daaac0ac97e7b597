/**
 * Everybody in a test comes from one address, which is not what the limits of an address are for. A test of those limits
 * sets its own.
 */
export const ONE_ADDRESS = { ROOST_ADDRESS_REQUESTS: "1000000", ROOST_ADDRESS_REFUSALS: "1000000" };
