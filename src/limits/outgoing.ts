const KIB = 1024;
const MIB = 1024 * KIB;

/** What bounds one kind of call that this program makes over the network. None of them follows a redirect. */
export interface OutgoingBounds {
  /** Files below src/ that make such calls; no other may (test/architecture/outgoing.test.ts). */
  files: readonly string[];
  /** The longest a call may take, its answer included; it is cut off then. */
  deadlineMs: number;
  /** The longest answer that is read. */
  answerBytes: number;
  /**
   * Open at once. Bun opens 256 connections for `fetch` and lets what comes then wait: all kinds together stay below it,
   * so that no kind waits for another (api.md section 1, Limits).
   */
  connections: number;
}

/** Every call that the program makes over the network, and what bounds it. */
export const OUTGOING = {
  /** JSON-RPC to a network's nodes (billing.md, x402 5); `connections` to look at transactions, of each network. */
  rpc: { files: ["chain/node.ts"], deadlineMs: 1_500, answerBytes: 2 * MIB, connections: 16 },
  /** What an x402 facilitator settles, by what it is asked. */
  facilitator: {
    files: ["payments/facilitator/facilitator.ts"],
    supportedMs: 1_500,
    verifyMs: 5_000,
    deadlineMs: 30_000,
    answerBytes: 256 * KIB,
    connections: 16,
  },
  /** Mail by SMTP: `answerBytes` of one reply. */
  mail: { files: ["mail/smtp.ts"], deadlineMs: 20_000, answerBytes: 64 * KIB, connections: 16 },
  /** `roost doctor` asks a model server what it has. */
  modelList: { files: ["cli/operator/check-host.ts"], deadlineMs: 5_000, answerBytes: MIB, connections: 1 },
  /** Whether an Ollama answers on this machine, for the console and `roost doctor` to offer it. */
  ollama: { files: ["models/ollama.ts"], deadlineMs: 1_000, answerBytes: MIB, connections: 1 },
  /** A user command to a server's API; the longest answer is an agent with all its files, the deadline a stream's head. */
  command: { files: ["cli/user/client.ts"], deadlineMs: 30_000, answerBytes: 64 * MIB, connections: 1 },
} as const satisfies Record<string, OutgoingBounds & Record<string, unknown>>;

/**
 * Calls of models: their silence is bounded, not their time, for an answer is read as it comes. The figures stand in the
 * files; how many run at once is the runtime's to say.
 */
export const MODEL_CALLS = { files: ["models/openai/open-answer.ts", "models/openai/connect-probe.ts"] } as const;
