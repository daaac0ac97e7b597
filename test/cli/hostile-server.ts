/**
 * What a server could do to a terminal: clear it, change its title, colour, ring, move back, reverse the direction,
 * forge a line.
 */
export const EVIL = [
  "a\u001b[2J",
  "\u001b]0;title\u0007",
  "\u009b31m",
  "\u0085",
  "b\r",
  "\u0008",
  "\u007f",
  "\u202e",
  "\u2066",
  "\u200f",
  "\u2028",
  "\nFORGED",
].join("");
/** What must never reach a terminal. New lines are checked separately. */
export const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
/** The same as a stream's deltas, with sequences split between two of them. */
export const DELTAS = ["one\u001b", "[2J two\u009b", "31m three\u202e", "four \u001b]0;ti", "tle\u0007 five\n", "six"];

const HEX = "0123456789abcdef".repeat(2);
export const INSTANCE = `inst_${HEX}`;
export const AGENT = `agt_${HEX}`;
export const CONVERSATION = `conv_${HEX}`;
const TIME = "2026-11-21T10:00:00.000Z";
const MONEY = "1.000000";

/** One record for every route: every text in it is this one. */
export const recordOf = (text: string) => ({
  instanceId: text,
  agentId: text,
  accountId: text,
  email: text,
  conversationId: text,
  messageId: text,
  title: text,
  isDefault: false,
  origin: { type: text, id: text },
  messageCount: 1,
  name: text,
  slug: text,
  displayName: text,
  model: text,
  files: [text],
  status: text,
  statusReason: text,
  agentCount: 1,
  billing: { pricePerHour: MONEY, accrued: MONEY, currency: text },
  key: text,
  approvalId: text,
  runId: text,
  tool: text,
  input: { [text]: [text] },
  questions: [{ question: text, options: [text] }],
  answers: [text],
  note: text,
  decidedBy: text,
  cron: text,
  timeZone: text,
  enabled: true,
  nextAt: TIME,
  slotAt: TIME,
  reason: text,
  conversation: text,
  expiresAt: TIME,
  tainted: true,
  version: text,
  size: 1,
  description: text,
  source: text,
  role: text,
  message: text,
  sender: { type: text, id: text, name: text },
  finishReason: text,
  requires: { secrets: [text], hosts: [text], tools: [text] },
  license: text,
  instructions: text,
  missingSecrets: [text],
  missingTools: [text],
  serverId: text,
  url: text,
  tools: [{ name: text, state: text, description: text }],
  imported: { files: 1, bytes: 1, conversations: 1, messages: 1 },
  review: {
    skills: [
      {
        name: text,
        version: text,
        sha256: text,
        state: text,
        requires: { secrets: [text], hosts: [text], tools: [text] },
        missingSecrets: [text],
        missingTools: [text],
      },
    ],
    policies: [{ tool: text, policy: text }],
    rules: [{ tool: text, host: text, method: text }],
    model: text,
    schedules: [{ name: text, cron: text, everySeconds: null, timeZone: text }],
    heartbeat: { everySeconds: 1800, timeZone: text, activeHours: { from: text, to: text } },
    leftOut: [text],
  },
  items: [{ origin: text, file: text, fromLine: 1, conversationId: text, text, createdAt: TIME }],
  degraded: text,
  authorizationUrl: text,
  balance: MONEY,
  currency: text,
  pricePerHour: MONEY,
  owed: MONEY,
  minimumTopUp: MONEY,
  runningInstances: 1,
  estimatedEmptyAt: null,
  networks: [text],
  type: text,
  amount: MONEY,
  balanceAfter: MONEY,
  network: text,
  txHash: text,
  day: text,
  cost: MONEY,
  pieces: [{ kind: text, name: text, tokens: 1, text }],
  totalTokens: 1,
  contextTokens: 2,
  dropped: 1,
  createdAt: TIME,
  updatedAt: TIME,
  installedAt: TIME,
});

export const RECORD = recordOf(EVIL);

const LISTS =
  /\/(instances|agents|skills|secrets|mcp-servers|schedules|slots|usage|transactions|messages|files|conversations|approvals)$/;

export interface HostileServer extends AsyncDisposable {
  url: string;
  /** Refuses everything, with hostile messages. */
  refuse(): void;
}

/** A malicious server, whose responses attack the terminal that shows them; or one that answers with another record. */
export function startHostileServer(record: object = RECORD): HostileServer {
  let refusing = false;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (refusing) {
        const error = { code: EVIL, message: EVIL, status: 400, requestId: EVIL };
        return Response.json({ error }, { status: 400 });
      }
      if (pathname.endsWith("/bundle")) return new Response(EVIL, { headers: { "Content-Type": "application/gzip" } });
      const streams = request.method === "POST" ? /\/messages$/ : /\/events$/;
      if (streams.test(pathname)) return new Response(events(), SSE);
      if (request.method === "GET" && LISTS.test(pathname)) return Response.json({ data: [record], nextCursor: null });
      return Response.json(record);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    refuse() {
      refusing = true;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

const SSE = { headers: { "Content-Type": "text/event-stream" } };

/** A complete run, with its text in deltas. */
function events(): string {
  let id = 0;
  const event = (type: string, more: Record<string, unknown>) => {
    id += 1;
    const data = { id, type, agentId: AGENT, runId: "run_1", createdAt: EVIL, ...more };
    return `id: ${id}\nevent: x\ndata: ${JSON.stringify(data)}\n\n`;
  };
  return [
    event("run.started", { note: EVIL }),
    event(EVIL, { more: EVIL }),
    event("tool.started", { toolCallId: EVIL, name: EVIL, input: { [EVIL]: EVIL } }),
    event("tool.completed", { toolCallId: EVIL, name: EVIL, output: EVIL, isError: true }),
    ...DELTAS.map((delta) => event("message.delta", { delta })),
    event("message.completed", { message: { ...RECORD, message: DELTAS.join("") } }),
    event("run.completed", {}),
  ].join("");
}
