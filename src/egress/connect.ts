import { connect as connectTcp, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { isSame } from "./address.ts";
import { EgressError } from "./refusal.ts";
import { shownHost, type Target } from "./target.ts";

const CONNECT_MS = 5_000;

/** Failures of the connection below TLS. */
const OF_NETWORK = /^E(?:CONN|HOST|NET|TIMEDOUT|PIPE|ADDR)/;

/**
 * Opens a connection to an address that was judged, for https with the host's name verified. The runtime never sees the
 * name as one to resolve, nor any proxy of the environment. Throws `EgressError`, or the signal's reason.
 */
export async function connectTo(address: string, target: Target, signal: AbortSignal, ca?: string): Promise<Socket> {
  const { host, isAddress, port, secure } = target;
  // Not with the program: it would take a tenth of the time of a start.
  const { connect: connectTls } = await import("node:tls");
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket: Socket = secure
    ? connectTls({
        host: address,
        port,
        ...(ca === undefined ? {} : { ca }),
        ALPNProtocols: ["http/1.1"],
        // No name is sent for an address: its certificate must then be for the address.
        servername: isAddress ? "" : host,
        // The default would be taken from NODE_TLS_REJECT_UNAUTHORIZED.
        rejectUnauthorized: true,
      })
    : connectTcp({ host: address, port });

  function finish(settle: () => void): void {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    settle();
  }
  const fail = (error: unknown) =>
    finish(() => {
      socket.destroy();
      reject(error);
    });
  const abort = () => fail(signal.reason);
  const timer = setTimeout(
    () =>
      fail(
        new EgressError("connect", `${shownHost(target)} did not accept a connection within ${CONNECT_MS / 1000} s`),
      ),
    CONNECT_MS,
  );
  signal.addEventListener("abort", abort, { once: true });

  socket.once(secure ? "secureConnect" : "connect", () => {
    // Checked again after the fact: this peer, with a verified certificate.
    if (!isSame(socket.remoteAddress ?? "", address)) {
      fail(new EgressError("connect", `${shownHost(target)} was reached at another address`));
    } else if (secure && (socket as TLSSocket).authorized !== true) {
      fail(new EgressError("tls", `the certificate of ${shownHost(target)} could not be verified`));
    } else {
      finish(() => resolve(socket));
    }
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    const code = error.code ?? error.message;
    const isTls = secure && !OF_NETWORK.test(code);
    const what = isTls ? "offers no valid certificate or TLS" : "cannot be connected to";
    fail(new EgressError(isTls ? "tls" : "connect", `${shownHost(target)} ${what} (${code})`, { cause: error }));
  });
  return promise;
}
