export type Address = `0x${string}`;

/** A chain that USDC is accepted on. Addresses are Circle's native USDC (docs/contract/billing.md, Networks). */
export interface Network {
  name: NetworkName;
  chainId: number;
  asset: Address;
  defaultRpcUrls: string[];
  /** Blocks, the transfer's own included, before it is credited. */
  defaultConfirmations: number;
}

export const NETWORK_NAMES = ["base", "ethereum", "polygon"] as const;
export type NetworkName = (typeof NETWORK_NAMES)[number];

export const NETWORKS: Record<NetworkName, Network> = {
  base: {
    name: "base",
    chainId: 8453,
    asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    defaultRpcUrls: ["https://mainnet.base.org", "https://base-rpc.publicnode.com"],
    defaultConfirmations: 10,
  },
  ethereum: {
    name: "ethereum",
    chainId: 1,
    asset: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
    defaultRpcUrls: ["https://ethereum-rpc.publicnode.com", "https://eth.drpc.org"],
    defaultConfirmations: 12,
  },
  polygon: {
    name: "polygon",
    chainId: 137,
    asset: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
    defaultRpcUrls: ["https://polygon-bor-rpc.publicnode.com", "https://polygon.drpc.org"],
    defaultConfirmations: 128,
  },
};
