import { createFairPlaces } from "../limits/fair-places.ts";
import { OUTGOING } from "../limits/outgoing.ts";
import { EgressError } from "./refusal.ts";

/** A body longer than this takes a place. */
const SMALL_BYTES = 256 * 1024;

/** Reads a body to its end, or throws what it throws, or the signal's reason. */
export type ReadWhole = (
  body: AsyncIterable<Buffer>,
  owner: string,
  signal: AbortSignal,
) => Promise<Buffer<ArrayBuffer>>;

/**
 * Reads bodies whole, few large ones at the same time: however many servers send large answers at once, the host holds
 * only the beginnings of the others, whose connections stand still until it is their turn.
 */
export function createWholeBodies(): ReadWhole {
  const places = createFairPlaces(OUTGOING.agents.largeAnswers);

  return async (body, owner, signal) => {
    const pieces: Buffer[] = [];
    let size = 0;
    let release: (() => void) | undefined;
    try {
      for await (const piece of body) {
        pieces.push(piece);
        size += piece.length;
        if (size > SMALL_BYTES) release ??= await place(owner, signal);
      }
      return Buffer.concat(pieces);
    } finally {
      pieces.forEach(free);
      release?.();
    }
  };

  async function place(owner: string, signal: AbortSignal): Promise<() => void> {
    const release = await places.take(owner, signal);
    if (release === null) throw new EgressError("busy", "too many answers of this account wait: try again later");
    return release;
  }
}

/**
 * Gives a piece's memory back now: the garbage collector comes to it only after a hundred more. A piece that shares its
 * memory is left to it, since a decoder may still write there.
 */
function free({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && byteLength > 0 && byteLength === buffer.byteLength) buffer.transfer(0);
}
