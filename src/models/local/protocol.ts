/**
 * The messages between the host and the model process: structured clones over Bun IPC, in order. A request may be sent
 * before `ready`; the process handles it once it has loaded.
 */
import type { FinishReason } from "../engine.ts";
import type { ToolUse } from "./tools/tool-use.ts";

export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface ProcessSettings {
  /** Folder for what a compiled binary unpacks; not touched when running from source. */
  cacheDir: string;
  /** Threads of one inference; more than the physical cores halve the speed. */
  threads: number;
  /** Conversations that can be answered, or kept warm, at once. */
  slots: number;
  /** Rows of all key/value caches together that may stay in memory, 46 KB each. */
  cacheTokens: number;
  stepper: "ffi" | "ort";
}

export interface Generate {
  type: "generate";
  id: number;
  accountId: string;
  instanceId: string;
  messages: ChatMessage[];
  maxTokens: number;
  temperature: number;
  stop: string[];
  /** Absent if no tool may be called. */
  tools?: ToolUse;
  /** The JSON Schema of the answer, if it is to be JSON. */
  output?: Record<string, unknown>;
  /** Whether the answer is checked while it is written, and faulty parts are written again. */
  guarded: boolean;
  /** Makes the sampling repeatable; random if absent. */
  seed?: number;
}

export interface ToolRequest {
  name: string;
  input: Record<string, unknown>;
}

export type HostToModel =
  | { type: "start"; settings: ProcessSettings }
  | Generate
  | { type: "embed"; id: number; texts: string[] }
  | { type: "cancel"; id: number };

export type ModelToHost =
  | { type: "ready" }
  | { type: "loaded"; stepper: "ffi" | "ort"; fellBackBecause?: string }
  | { type: "started"; id: number; promptTokens: number; cachedTokens: number }
  | { type: "text"; id: number; text: string }
  /** With `call`, if the reason is that a tool is called. */
  | { type: "done"; id: number; completionTokens: number; reason: FinishReason; call?: ToolRequest }
  | { type: "overflow"; id: number; promptTokens: number; limitTokens: number }
  | { type: "embedded"; id: number; vectors: Float32Array[]; tokens: number }
  | { type: "failed"; id: number; message: string };
