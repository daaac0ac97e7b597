const KIB = 1024;
const MIB = 1024 * KIB;

/** The bounds of one kind of outgoing network call. None follows redirects, except those of agents. */
export interface OutgoingBounds {
  /** The files in src/ that make such calls; no other may (test/architecture/outgoing.test.ts). */
  files: readonly string[];
  /** A call is aborted after this, its answer included. */
  deadlineMs: number;
  /** The longest answer accepted. */
  answerBytes: number;
  /**
   * Concurrent calls. Bun allows 256 connections for `fetch` and makes further calls wait: all kinds together stay
   * below that, so that no kind waits for another (docs/contract/api.md, Limits).
   */
  connections: number;
}

/**
 * Every kind of call that the program makes over the network, but calls of models: they are streams, of which silence is
 * bounded rather than total time.
 */
export const OUTGOING = {
  /** JSON-RPC to a network's nodes (docs/contract/billing.md, Nodes); `connections` for each network. */
  rpc: { files: ["chain/node.ts"], deadlineMs: 1_500, answerBytes: 2 * MIB, connections: 16 },
  /** An x402 facilitator, with a deadline for each of its methods. */
  facilitator: {
    files: ["payments/facilitator/facilitator.ts"],
    supportedMs: 1_500,
    verifyMs: 5_000,
    deadlineMs: 30_000,
    answerBytes: 256 * KIB,
    connections: 16,
  },
  /** SMTP; `answerBytes` for each reply. */
  mail: { files: ["mail/smtp.ts"], deadlineMs: 20_000, answerBytes: 64 * KIB, connections: 16 },
  /**
   * What agents cause (src/egress/), over sockets of its own: none of Bun's connections are used. `answerBytes` are
   * counted after decompression. Further requests of an account wait for one of its places.
   */
  agents: {
    files: ["egress/connect.ts", "egress/resolve.ts"],
    deadlineMs: 20_000,
    answerBytes: 5 * MIB,
    connections: 64,
    places: { total: 64, maxPerOwner: 16, maxWaitingPerOwner: 256 },
    /** Answers of more than 256 KiB that arrive at the same time. */
    largeAnswers: { total: 8, maxPerOwner: 2, maxWaitingPerOwner: 16 },
    redirects: 3,
  },
  /**
   * Servers of the Model Context Protocol, through the guard of agents' requests. The deadline is for connecting, and for a
   * list of tools; a call has its own. `connections` are clients, each of which may listen for changes while it is open.
   */
  mcp: {
    files: ["mcp/connections.ts"],
    deadlineMs: 20_000,
    callMs: 60_000,
    answerBytes: 5 * MIB,
    connections: 64,
    clients: { total: 64, maxPerOwner: 16 },
    /** Calls and lists at the same time. */
    places: { total: 64, maxPerOwner: 16, maxWaitingPerOwner: 64 },
    idleMs: 5 * 60_000,
  },
  /** Traces to the operator's collector, if there is one; the deadline is the longest that may be set. */
  traces: { files: ["traces/sending.ts"], deadlineMs: 30_000, answerBytes: 4 * MIB, connections: 4 },
  /** A model server is asked for its models: by `roost doctor`, and for the sizes of their contexts, once at a time. */
  modelList: {
    files: ["cli/operator/check-host.ts", "models/openai/context-sizes.ts"],
    deadlineMs: 5_000,
    answerBytes: MIB,
    connections: 1,
  },
  /** `roost models pull` asks a hub for a model; the deadline is for silence while a file arrives, whose size is known. */
  hub: { files: ["models/store/hub.ts"], deadlineMs: 30_000, answerBytes: 16 * MIB, connections: 1 },
  /** Backups to S3, from a process of their own; `partMs` is the deadline of a request with a body. */
  s3: {
    files: ["backup/s3-upload.ts"],
    deadlineMs: 30_000,
    partMs: 10 * 60_000,
    answerBytes: 64 * KIB,
    connections: 2,
  },
  /** Looks for Ollama on this machine, which the console and `roost doctor` then offer. */
  ollama: { files: ["models/ollama.ts"], deadlineMs: 1_000, answerBytes: MIB, connections: 1 },
  /**
   * User commands to a server's API. The longest answer is an agent with all its files; for a stream the deadline is
   * for its headers. Bundles take longer, to be packed and unpacked, and are as long as they are.
   */
  command: {
    files: ["cli/user/client.ts"],
    deadlineMs: 30_000,
    fileDeadlineMs: 300_000,
    answerBytes: 64 * MIB,
    connections: 1,
  },
} as const satisfies Record<string, OutgoingBounds & Record<string, unknown>>;
