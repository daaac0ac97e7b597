import type { Records } from "./api.ts";

export type Account = Records["Account"];
export type Billing = Records["Billing"];
export type ApiKey = Records["Key"];
export type Instance = Records["Instance"];
/** Of an agent, the same in lists and alone. */
export type Agent = Records["Agent"] | Records["ListedAgent"];
export type Policy = Records["Tool"]["defaultPolicy"];
export type Found = Records["MemoryFound"];
export type Schedule = Records["Schedule"];
export type Slot = Records["ScheduleSlot"];
export type Tool = Records["Tool"];
export type CatalogSkill = Records["ListedSkill"];
export type InstalledSkill = Records["InstanceSkill"];
/** What a skill of the catalog and an installed one have in common. */
export type Skill = CatalogSkill | InstalledSkill;
export type McpServer = Records["McpServer"];
export type Message = Records["Message"];
export type Run = Records["Run"];
export type Approval = Records["Approval"];
/** What need not be asked again. */
export type ApprovalRule = Records["ApprovalRule"];
/** What models took: of an agent, an instance, a model or a day. */
export type ModelUsage = Records["ModelUsage"];
export type Host = Records["Host"];
/** What to pay and where; the amount is the same on every network. */
export type Quote = Records["Quote"];

export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}

/** Paths of the API that several parts of the page use. */
export const INSTANCE = "/v1/instances/{instanceId}";
export const AGENT = `${INSTANCE}/agents/{agentId}` as const;
