import { lazily } from "../../src/lib/lazily.ts";
import { hasCode } from "../../src/lib/system-error.ts";

/** Where blocks of ports begin: below the ports that systems assign by themselves. */
const FIRST_PORT = 10_000;
const BLOCKS = 312;
const PORTS = 64;

/** This process's block: it listens on the first port as long as it lives, so that no other process takes the block. */
const block = lazily(() => {
  for (;;) {
    const first = FIRST_PORT + PORTS * Math.floor(Math.random() * BLOCKS);
    const held = listen(first);
    if (held === null) continue;
    held.unref();
    return { first, used: 0 };
  }
});

/**
 * A free port for a server that dies: while it is dead, nobody else's comes to answer at its address, not even that of
 * another process that runs these tests.
 */
export function portOfItsOwn(): number {
  const own = block();
  for (;;) {
    const port = own.first + 1 + (own.used++ % (PORTS - 1));
    const free = listen(port);
    if (free === null) continue;
    free.stop(true);
    return port;
  }
}

/** Null if the port is in use. */
function listen(port: number) {
  try {
    return Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } });
  } catch (error) {
    if (!hasCode(error, "EADDRINUSE")) throw error;
    return null;
  }
}

/** The server died during the request, or is not up again yet. */
export const isDead = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof Error && "code" in error && /^(E|Conn)/.test(String(error.code)));

/** A short wait before a dead server is called again. */
export const turn = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 5));
