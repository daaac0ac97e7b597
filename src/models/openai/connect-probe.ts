import { connect } from "node:net";

/**
 * Whether a TCP connection to the URL's host succeeds within `timeoutMs`. `fetch` does not distinguish connecting from
 * waiting for the answer, so a host that drops packets would look like a slow model.
 */
export function canConnect(url: URL, timeoutMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ""), port });
  const finish = (connected: boolean) => {
    clearTimeout(timer);
    socket.destroy();
    resolve(connected);
  };
  const timer = setTimeout(finish, timeoutMs, false);
  socket.once("connect", () => finish(true));
  socket.once("error", () => finish(false));
  return promise;
}
