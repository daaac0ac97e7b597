/** What the attacks have in common. */
export interface Target {
  url: string;
  /** The attacker's key; strangers do not need it. */
  key: string;
  instanceId: string;
  agents: string[];
  /** A model server of the attacker's own (bench/calling-model.ts), with `/v1`. */
  model: string;
}

export type Ask = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Response>;

export type Attack = (target: Target, ask: Ask) => Promise<void>;

/** Runs this many at once, each again and again. A failed one is repeated after a moment. */
export async function forever(lanes: number, work: (turn: number) => Promise<unknown>): Promise<void> {
  let turn = 0;
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (;;) await work(turn++).catch(() => Bun.sleep(50));
    }),
  );
}

export async function read(asked: Promise<Response>): Promise<void> {
  const response = await asked;
  await response.arrayBuffer();
  // The attacker ignores Retry-After, but pauses a little, since it shares the machine with the measurement.
  if (response.status === 429 || response.status === 503) await Bun.sleep(5);
}

export async function json(asked: Promise<Response>): Promise<Record<string, string> | null> {
  const response = await asked;
  const body = (await response.json()) as Record<string, string>;
  return response.ok ? body : null;
}
