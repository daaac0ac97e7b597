import { hasCode } from "../../src/lib/system-error.ts";

/**
 * A free port of those that no system chooses by itself: while a server is dead, nobody else's comes to answer at its
 * address.
 */
export function portOfItsOwn(): number {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch (error) {
      if (!hasCode(error, "EADDRINUSE")) throw error;
    }
  }
}

/** The server died during the request, or is not up again yet. */
export const isDead = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof Error && "code" in error && /^(E|Conn)/.test(String(error.code)));

/** A short wait before a dead server is called again. */
export const turn = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 5));
