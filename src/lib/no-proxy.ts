/** How programs name this machine. */
const HERE = "localhost,127.0.0.1,::1";

/**
 * Requests to this machine go past a proxy of the environment, which would see their keys and most often cannot reach it:
 * Bun's `fetch` makes no exception by itself.
 */
export function bypassProxyHere(env: Record<string, string | undefined>): void {
  const others = env.no_proxy || env.NO_PROXY;
  env.NO_PROXY = env.no_proxy = others ? `${others},${HERE}` : HERE;
}
