import OpenAI from "openai";
import { type Conversation, startConversation } from "../messages/conversation.ts";
import type { MockAnswer } from "../support/mock-model-server.ts";

/** A conversation's server, with OpenAI's own client in front of its agent. */
export interface Surface extends Conversation {
  key: string;
  baseURL: string;
  client: OpenAI;
  /** The messages of the last request to the model, without the system's. */
  asked(): { role: string; content: unknown; tool_calls?: unknown }[];
}

export async function startSurface(...options: Parameters<typeof startConversation>): Promise<Surface> {
  const it = await startConversation(...options);
  const key: string = (await it.person.ask("POST", "/v1/auth/keys", {})).body.key;
  const baseURL = `${it.server.url}/v1`;
  return Object.defineProperties({} as Surface, {
    ...Object.getOwnPropertyDescriptors(it),
    key: { value: key },
    baseURL: { value: baseURL },
    client: { value: new OpenAI({ apiKey: key, baseURL, maxRetries: 0 }) },
    asked: { value: () => it.mock.requests.at(-1)?.body.messages.slice(1) },
  });
}

export const WEATHER: { name: string; description: string; parameters: Record<string, unknown> } = {
  name: "get_weather",
  description: "The weather in a city",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
};

/** A model that says something, and then fails. */
export const BREAKING: MockAnswer = {
  kind: "raw",
  chunks: [
    'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\n',
    'data: {"error":{"message":"out of memory"}}\n\n',
  ],
};

export const PERSON = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
} as const;
