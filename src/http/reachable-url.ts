/** `0.0.0.0` and `::`, however it is written. */
export const isEveryAddress = (host: string): boolean => host === "0.0.0.0" || /^[0:]*:[0:]*$/.test(host);

/** The URL for a browser on this machine: the unspecified address cannot be opened. */
export function reachableUrl(host: string, port: number): string {
  const name = isEveryAddress(host) ? "localhost" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${port}`;
}
