/** The fields of the API's records that this page reads. */
export interface Account {
  email: string;
  name: string;
  balance: string;
  currency: string;
  limits: { monthlyLimit: string | null; spentThisMonth: string };
}
export interface Billing {
  pricePerHour: string;
  minimumLaunchBalance: string;
  minimumTopUp: string;
  currency: string;
}
export interface ApiKey {
  keyId: string;
  name: string | null;
  prefix: string;
  scopes: string[];
  createdAt: string;
  lastUsedAt: string | null;
}
export interface Instance {
  instanceId: string;
  name: string;
  status: string;
  statusReason: string | null;
  agentCount: number;
  billing: { pricePerHour: string; accrued: string; currency: string };
}
export interface Agent {
  agentId: string;
  slug: string;
  displayName: string;
  model: string | null;
  /** The owner's word on some of its tools. */
  tools: Record<string, Policy>;
}
export type Policy = "deny" | "ask" | "allow" | "always";
export interface Tool {
  name: string;
  description: string;
  changes: "nothing" | "workspace" | "outside";
  untrustedOutput: boolean;
  defaultPolicy: Policy;
}
/** What a skill of the catalog and an installed one have in common. */
export interface Skill {
  name: string;
  description: string;
  version: string;
  requires: { secrets: string[]; hosts: string[]; tools: string[] };
  secretHosts: Record<string, string[]>;
  sha256: string;
}
export interface CatalogSkill extends Skill {
  license: string | null;
}
export interface InstalledSkill extends Skill {
  source: "catalog" | "upload";
  installedAt: string;
  missingSecrets: string[];
  missingTools: string[];
}
export interface Message {
  messageId: string;
  runId: string;
  role: "user" | "agent";
  message: string;
  finishReason: string | null;
}
export interface Run {
  runId: string;
  status: string;
  error: { message: string } | null;
}
export interface Approval {
  approvalId: string;
  status: string;
  instanceId: string;
  agentId: string;
  tool: string;
  input: unknown;
  inputHash: string;
  tainted: boolean;
  questions: { question: string; options: string[] }[] | null;
  answers: string[] | null;
  note: string | null;
  decidedBy: string | null;
  createdAt: string;
  expiresAt: string;
}
/** What need not be asked again. */
export interface ApprovalRule {
  ruleId: string;
  agentId: string;
  tool: string;
  host: string | null;
  method: string | null;
  createdAt: string;
}
export interface Host {
  model: string;
  /** An Ollama on the host's machine, and the settings file to configure it in. */
  ollama: { baseUrl: string; models: string[]; settingsFile: string } | null;
}
/** What to pay and where; the amount is the same on every network. */
export interface Quote {
  amount: string;
  options: PayOption[];
}
export interface PayOption {
  network: string;
  recipient: string;
}
export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}
