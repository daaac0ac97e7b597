export type { AgentIds, FollowOptions, Message, MessageInput, Roost, SendOptions, Written } from "./client.ts";
export { createRoost } from "./client.ts";
export type { ErrorCode, ErrorDetails } from "./error.ts";
export { RoostError } from "./error.ts";
export type { AgentEvent, RunEvent } from "./follow.ts";
export { endsRun } from "./follow.ts";
export type { Answer, CallOptions, Method, Operation, PathWith } from "./operations.ts";
export type { RoostOptions } from "./requests.ts";
export type { components, operations, paths } from "./schema.ts";
