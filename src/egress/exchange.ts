import type { Socket } from "node:net";
import type { AddressKind } from "./address.ts";
import { readBody } from "./body.ts";
import { connectTo } from "./connect.ts";
import { type AnswerHead, readHead } from "./head.ts";
import type { EgressPolicy } from "./policy.ts";
import { createSocketReader } from "./reader.ts";
import { type Message, writeMessage } from "./request.ts";
import { addressesOf, type Resolve, resolveByServers, resolveBySystem } from "./resolve.ts";
import type { Target } from "./target.ts";

/** An answer whose body is still to come. */
export interface OpenAnswer extends AnswerHead {
  /** Decoded. Reading it to its end, or leaving it, closes the connection. */
  body: AsyncGenerator<Buffer>;
  close(): void;
}

/** One request over a connection of its own, to an address that was judged; redirects are answers like others. */
export type Exchange = (target: Target, message: Message, maxBytes: number, signal: AbortSignal) => Promise<OpenAnswer>;

export interface ExchangeParts {
  policy: EgressPolicy;
  /** Instead of the system's name servers. */
  resolve?: Resolve | undefined;
  kindOf(address: string): AddressKind;
  ca?: string | undefined;
}

/** Addresses of one name that are tried, one after the other. */
const MAX_ADDRESSES = 4;

export function createExchange({ policy, resolve, kindOf, ca }: ExchangeParts): Exchange {
  async function reach(target: Target, signal: AbortSignal): Promise<Socket> {
    const ask = resolve ?? (policy.names(target) ? resolveBySystem : resolveByServers);
    const addresses = await addressesOf(target, ask, signal);
    policy.requireReachable(target, addresses, kindOf);
    let failure: unknown;
    for (const address of addresses.slice(0, MAX_ADDRESSES)) {
      try {
        return await connectTo(address, target, signal, ca);
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
    }
    throw failure;
  }

  return async (target, message, maxBytes, signal) => {
    // Before there is a connection: a message that cannot be sent opens none.
    const bytes = writeMessage(target, message);
    const socket = await reach(target, signal);
    const close = () => {
      signal.removeEventListener("abort", close);
      socket.destroy();
    };
    signal.addEventListener("abort", close, { once: true });
    try {
      const reader = createSocketReader(socket, signal);
      socket.write(bytes);
      const head = await readHead(reader);
      return { ...head, body: closing(readBody(reader, message.method, head, maxBytes, signal), close), close };
    } catch (error) {
      close();
      throw error;
    }
  };
}

async function* closing(body: AsyncGenerator<Buffer>, close: () => void): AsyncGenerator<Buffer> {
  try {
    yield* body;
  } finally {
    close();
  }
}
