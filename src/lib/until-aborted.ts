/** The work's result, unless the signal aborts first: then throws its reason, while the work goes on for others. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const stop = () => reject(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  work.then(resolve, reject);
  return promise.finally(() => signal.removeEventListener("abort", stop));
}
