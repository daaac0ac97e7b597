/**
 * The messages between the host and the model process: structured clones over Bun IPC, in order. A request may be sent
 * before `ready`; the process handles it once it has loaded.
 */

import type { FinishReason, ToolDescription } from "../engine.ts";
import type { Dtype } from "../store/dtypes.ts";
import type { Reachable } from "./announced-call.ts";
import type { CacheShape, GraphForm, StepperKind } from "./stepper.ts";
import type { ToolUse } from "./tools/tool-use.ts";

export interface ChatMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  /** Of the assistant, for a model whose template has a form for them. */
  calls?: PastCall[];
  /** Of a tool: the call that this is the result of. */
  answers?: Pick<PastCall, "id" | "name">;
}

/** A call of an earlier answer. */
export interface PastCall extends ToolRequest {
  id: string;
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
  /** The model that the operator has added and this process is for; absent for the embedded ones. */
  model?: AddedModel;
}

/** A model of the store, as its process needs it. */
export interface AddedModel {
  name: string;
  folder: string;
  /** As transformers.js names the form of its weights. */
  dtype: Dtype;
  contextTokens: number;
  /** How its graph is run with a shared cache; null for transformers.js. */
  fast: FastForm | null;
  /** Checked before they are loaded; absent if they have been checked just now. */
  files?: readonly { path: string; sha256: string }[];
}

/** For the decoder with a shared cache. */
export interface FastForm extends GraphForm {
  shape: Omit<CacheShape, "contextTokens">;
}

export interface Generate {
  type: "generate";
  id: number;
  accountId: string;
  instanceId: string;
  messages: ChatMessage[];
  maxTokens: number;
  /** The model's own if absent. */
  temperature?: number;
  stop: string[];
  /** For the embedded model; absent if no tool may be called. */
  tools?: ToolUse;
  /** For an added model, what it may call by its own template; absent if nothing. */
  functions?: readonly ToolDescription[];
  /** One of these it must call; absent if it may answer. */
  mustCall?: readonly ToolDescription[];
  /** What it calls if it says that it could, or that it cannot help. */
  reachable?: Reachable;
  /** The JSON Schema of the answer, if it is to be JSON. */
  output?: Record<string, unknown>;
  /** Whether the answer is checked while it is written, and faulty parts are written again. */
  guarded: boolean;
  /** Makes the sampling repeatable; random if absent. */
  seed?: number;
}

/** What a model does that is tried before it is said to be there. */
export interface Trial {
  /** What it has written. */
  text: string;
  /** How its graph is run with a shared cache; null if only transformers.js runs it. */
  fast: FastForm | null;
  /** Whether its template has a form for calls of functions. */
  callsTools: boolean;
}

export interface ToolRequest {
  name: string;
  input: Record<string, unknown>;
}

export type HostToModel =
  | { type: "start"; settings: ProcessSettings }
  | Generate
  | { type: "embed"; id: number; texts: string[] }
  /** Finds out whether the model works, and on which path. */
  | { type: "try"; id: number; shape: Omit<CacheShape, "contextTokens"> | undefined }
  /** What it has asked for; with a reason, there are none. */
  | { type: "vectors"; asked: number; vectors: Float32Array[]; reason?: string }
  | { type: "cancel"; id: number };

export type ModelToHost =
  | { type: "ready" }
  | { type: "loaded"; stepper: StepperKind; fellBackBecause?: string }
  | { type: "started"; id: number; promptTokens: number; cachedTokens: number }
  | { type: "text"; id: number; text: string }
  /** There is nothing to show yet, but it does not hang. */
  | { type: "working" }
  /** With `call`, if the reason is that a tool is called. */
  | { type: "done"; id: number; completionTokens: number; reason: FinishReason; call?: ToolRequest; isCallCut?: true }
  | { type: "overflow"; id: number; promptTokens: number; limitTokens: number }
  /** Asks for the vectors of texts, which the process of the embedding model computes. */
  | { type: "ask"; asked: number; texts: string[] }
  | { type: "embedded"; id: number; vectors: Float32Array[]; tokens: number }
  | ({ type: "tried"; id: number } & Trial)
  /** `loading` if the model could not be loaded. */
  | { type: "failed"; id: number; message: string; loading?: true };
