/** Nothing listens there, so that no test calls the nodes of the public chains. */
export const NO_NODES = {
  ROOST_BASE_RPC_URL: "http://127.0.0.1:9",
  ROOST_ETHEREUM_RPC_URL: "http://127.0.0.1:9",
  ROOST_POLYGON_RPC_URL: "http://127.0.0.1:9",
};
