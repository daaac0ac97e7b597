import { colours, note } from "../output.ts";

/** Tells of a lost connection once, and not of one that the first try brings back. */
export function whenLost(tell: () => void): (isConnected: boolean) => void {
  let failed = 0;
  return (isConnected) => {
    failed = isConnected ? 0 : failed + 1;
    if (failed === 2) tell();
  };
}

/** For a person who looks on: the command is silent until the connection is back, or given up. */
export function noteLoss(): void {
  if (process.stderr.isTTY) note(colours.dim("the connection is lost; trying again for a minute"));
}
