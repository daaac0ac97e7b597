/** `0.0.0.0` and `::`, however it is written. */
export const isEveryAddress = (host: string): boolean => host === "0.0.0.0" || /^[0:]*:[0:]*$/.test(host);

/** Where a browser on this machine reaches what listens there: every address of a machine is none that can be opened. */
export function reachableUrl(host: string, port: number): string {
  const name = isEveryAddress(host) ? "localhost" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${port}`;
}
