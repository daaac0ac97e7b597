/** Whether a socket's address is this machine's own. */
export const isLoopbackAddress = (address: string): boolean => address === "::1" || /^(::ffff:)?127\./.test(address);

/** Whether a host name of a URL or a `Host` header, in lower case and without a port, is this machine. */
export const isLoopbackName = (name: string): boolean =>
  name === "localhost" || name === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(name);
