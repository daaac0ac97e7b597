import type { Json } from "./openapi-components.ts";

/** A time in examples. */
const AT = "2026-11-22T10:00:00.000Z";

/**
 * What fields look like in examples, by name, or by operation or record and name, where their schemas do not say it;
 * undefined is for a field that is not shown.
 */
const VALUES: Record<string, unknown> = {
  sent: true,
  expiresInSeconds: 600,
  token: "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhY2N0In0.c2lnbmF0dXJl",
  email: "ada@example.org",
  key: "rst_live_Q2hhbmdlTWVQbGVhc2VDaGFuZ2VNZVBsZWFzZUNoYW5nZU1l",
  prefix: "rst_live_Q2hhbm",
  scopes: ["read", "write", "chat"],
  "Key.name": "laptop",
  "Key.instanceId": null,
  "Key.expiresAt": null,
  "createKey.name": "laptop",
  "createKey.instanceId": null,
  "createKey.expiresAt": null,
  "createKey.lastUsedAt": null,
  expiresAt: "2026-11-23T10:00:00.000Z",
  name: "Ada",
  hasMore: false,
  nextCursor: null,
  "Instance.name": "home",
  "Instance.status": "running",
  stoppedAt: null,
  slug: "ada",
  displayName: "Ada",
  "Agent.tools": { write_file: "ask" },
  "ListedAgent.tools": { write_file: "ask" },
  filesTruncated: undefined,
  files: { "SOUL.md": "You are a warm, well-read librarian. Answer in two sentences." },
  "ListedAgent.files": ["AGENTS.md", "SOUL.md"],
  "File.name": "notes/today.md",
  "deleteAgentFile.name": "notes/today.md",
  size: 27,
  "Tool.name": "write_file",
  "Tool.description": "Writes a file of the workspace",
  "Tool.changes": "workspace",
  "Tool.policy": "ask",
  "Tool.defaultPolicy": "allow",
  untrustedOutput: false,
  inputSchema: { type: "object", properties: { name: { type: "string" }, content: { type: "string" } } },
  tool: "http_request",
  input: { method: "POST", url: "https://shop.example.org/orders", body: "2 tickets" },
  tainted: false,
  questions: null,
  answers: null,
  decidedAt: null,
  "decideApproval.status": "approved",
  "decideApproval.decidedBy": "Ada Lovelace",
  "decideApproval.decidedAt": AT,
  "ApprovalRule.host": "shop.example.org:443",
  "ApprovalRule.method": "POST",
  "Schedule.name": "Morning",
  "Schedule.message": "Suggest a poem.",
  "Schedule.cron": "0 8 * * *",
  "Schedule.everySeconds": null,
  everySeconds: 1800,
  timeZone: "Europe/Berlin",
  activeHours: null,
  "Agent.heartbeat": null,
  "ListedAgent.heartbeat": null,
  "Schedule.kind": "schedule",
  "Schedule.model": null,
  failuresInARow: 0,
  "ScheduleSlot.reason": null,
  messageCount: 2,
  "createAgentConversation.messageCount": 0,
  "createAgentConversation.isDefault": false,
  "forkConversation.isDefault": false,
  "Conversation.origin": { type: "user", id: null },
  role: "agent",
  "Message.message": "A slim novel: it ends before the journey does.",
  "Message.sender": { type: "agent", id: "agt_0190f5e2c4a87b3d8e1f6a2b4c5d7e90", name: "Ada" },
  promptTokens: 21,
  completionTokens: 12,
  totalTokens: 33,
  "Run.status": "completed",
  "Agent.model": null,
  "ListedAgent.model": null,
  "importInstanceAgent.model": null,
  "Run.model": "local:smollm2-135m-instruct",
  "AgentContext.model": "local:smollm2-135m-instruct",
  "ModelUsage.model": "local:smollm2-135m-instruct",
  "ModelUsage.agentId": undefined,
  "ModelUsage.instanceId": undefined,
  "ModelUsage.day": undefined,
  waitingFor: null,
  error: null,
  "Transaction.type": "usage",
  "Transaction.balanceAfter": "9.970000",
  day: "2026-11-22",
  seconds: 86_400,
  networks: ["base", "ethereum", "polygon"],
  "Host.model": "local:smollm2-135m-instruct",
  ollama: null,
  authorizationUrl: "https://auth.example.com/authorize?client_id=roost&state=of-this-authorization",
  "McpServer.name": "docs",
  "McpServer.url": "https://mcp.example.com/mcp",
  "McpServer.headers": { Authorization: "Bearer {{secret:DOCS_TOKEN}}" },
  "McpServer.status": "ready",
  "McpServer.statusReason": null,
  "McpServer.lastAuthorization": null,
  "McpServer.protocolVersion": "2026-07-28",
  "McpServer.tools": [
    {
      name: "search",
      description: "Searches the documents",
      inputSchema: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
      state: "approved",
    },
  ],
  "Skill.name": "weather",
  "ListedSkill.name": "weather",
  "InstanceSkill.name": "weather",
  "deleteInstanceSkill.name": "weather",
  "Skill.files": ["SKILL.md"],
  description: "Looks up the weather at a place",
  version: "1.0.0",
  license: "Apache-2.0",
  tags: ["web"],
  requires: { secrets: [], hosts: ["api.open-meteo.com"], tools: ["http_request"] },
  secretHosts: {},
  sha256: "0".repeat(64),
  "Skill.instructions": "Ask for the place, then look up its weather.",
  missingSecrets: [],
  missingTools: [],
  keys: ["API_TOKEN"],
  "Secret.key": "API_TOKEN",
  "deleteInstanceSecret.key": "API_TOKEN",
  "Model.id": "agt_0190f5e2c4a87b3d8e1f6a2b4c5d7e90",
  id: "chatcmpl-0190f5e2c4a87b3d8e1f6a2b4c5d7e90",
  "AgentResponse.id": "resp_0190f5e2c4a87b3d8e1f6a2b4c5d7e90",
  created: 1_795_341_600,
  created_at: 1_795_341_600,
  owned_by: "roost",
  has_more: false,
  content: "A slim novel: it ends before the journey does.",
  text: "A slim novel: it ends before the journey does.",
  tool_calls: undefined,
  prompt_tokens: 21,
  completion_tokens: 12,
  total_tokens: 33,
  input_tokens: 21,
  output_tokens: 12,
  cached_tokens: 0,
  reasoning_tokens: 0,
  incomplete_details: null,
  annotations: [],
  logprobs: [],
  tool_choice: "auto",
  "Accepted.status": "queued",
  status: "completed",
  "createEmbedding.model": "local:all-minilm-l6-v2",
  index: 0,
  embedding: [0.013, -0.052, 0.031],
  model: "agt_0190f5e2c4a87b3d8e1f6a2b4c5d7e90",
};

/**
 * An example of what a schema describes in an operation, made of those of its fields, so that it always fits: the
 * schema's own, else the one of VALUES, else what its type allows. `schemas` are the components that it may refer to.
 */
export function exampleOf(
  schema: Json,
  schemas: Record<string, Json>,
  operation: string,
  name = "",
  record = "",
): unknown {
  const { $ref, type, items, properties, format } = schema as Schema;
  if ($ref !== undefined) {
    const of = $ref.split("/").at(-1) ?? "";
    return exampleOf(schemas[of] ?? {}, schemas, operation, name, of);
  }
  const key = [`${operation}.${name}`, `${record}.${name}`, name].find((key) => Object.hasOwn(VALUES, key));
  if (key !== undefined && suits(VALUES[key], schema as Schema)) return VALUES[key];
  const [given] = [schema.const ?? [], schema.default ?? [], schema.examples ?? schema.enum ?? []].flat();
  if (given !== undefined) return given;
  const [first] = ((schema.anyOf ?? schema.oneOf ?? []) as Json[]).filter((one) => one.type !== "null");
  if (first && !properties) return exampleOf(first, schemas, operation, name, record);
  if (properties) {
    const shown = Object.entries(properties).map(([field, of]) => [
      field,
      exampleOf(of, schemas, operation, field, record),
    ]);
    return Object.fromEntries(shown.filter(([, value]) => value !== undefined));
  }
  if (items) return [exampleOf(items, schemas, operation, name, record)];
  if (format === "date-time") return AT;
  return { object: {}, boolean: true, integer: 1, number: 1, string: "text" }[String(type)] ?? null;
}

/** Whether the value of a name is meant for this field of that name. Undefined leaves any field out. */
const suits = (value: unknown, { type, const: only, enum: some, pattern }: Schema): boolean =>
  value === undefined ||
  ((only === undefined || only === value) &&
    (some?.includes(value) ?? true) &&
    (pattern === undefined || new RegExp(pattern).test(String(value))) &&
    (type === undefined || [type].flat().some((name) => isOf(name, value))));

function isOf(type: string, value: unknown): boolean {
  if (value === null) return type === "null";
  return Array.isArray(value) ? type === "array" : type.replace("integer", "number") === typeof value;
}

interface Schema extends Json {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  pattern?: string;
  $ref?: string;
  items?: Json;
  properties?: Record<string, Json>;
}
