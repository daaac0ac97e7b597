/** The server died during the request, or is not up again yet. */
export const isDead = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof Error && "code" in error && /^(E|Conn)/.test(String(error.code)));

/** A short wait before a dead server is called again. */
export const turn = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 5));
