import type { Tool } from "../../src/tools/tool.ts";
import { readEvents } from "../messages/conversation.ts";
import { type MockAnswer, type MockRequest, startMockModelServer } from "../support/mock-model-server.ts";
import { startTestServer } from "../support/test-server.ts";

/** What a model says to a message: text, or calls of tools. */
export type Says = string | [name: string, input: object][];
/** What one agent's model says, step by step: of the message's last label-free line, and how many calls were answered. */
export type Script = Record<string, Says[]>;

/** The text of the newest user message, without the label and the marks that the host puts around an agent's words. */
export function askedOf({ body }: MockRequest): string {
  const text: string = body.messages.findLast(({ role }: { role: string }) => role === "user")?.content ?? "";
  const plain = text.replace(/^\[[^\n]*\]\n/, "").replace(/^\[[^\n]*\]\n<untrusted-[0-9a-f]+>\n/, "");
  return plain.replace(/\n<\/untrusted-[0-9a-f]+>$/, "");
}

/** The results of calls since that message. */
export function resultsOf({ body }: MockRequest): string[] {
  const last = body.messages.findLastIndex(({ role }: { role: string }) => role === "user");
  const after: { role: string; content: string }[] = body.messages.slice(last);
  return after.filter(({ role }) => role === "tool").map(({ content }) => content);
}

export interface AgentsSetting {
  settings?: Record<string, string>;
  /** What each text answer reports. */
  usage?: { prompt_tokens: number; completion_tokens: number };
}

/** A server with agents whose model does as it is told, message by message. */
export async function startAgents(
  moreTools: readonly Tool[] = [],
  options: Parameters<typeof startTestServer>[1] = {},
  { usage, ...more }: AgentsSetting = {},
) {
  const textOf = (text: string): MockAnswer => ({ kind: "text", tokens: [text], ...(usage && { usage }) });
  const scripts = new Map<string, Says[]>();
  const held = new Map<string, Promise<void>>();
  let calls = 0;
  const mock = startMockModelServer({
    answer(request) {
      const asked = askedOf(request);
      const says = scripts.get(asked)?.[new Set(stepsOf(request)).size];
      if (says === undefined) return textOf(`Said: ${asked}`);
      if (typeof says !== "string") {
        return {
          kind: "tools",
          calls: says.map(([name, input]) => ({ id: `call_${++calls}`, name, arguments: input })),
        };
      }
      if (says === "HANG") return { kind: "hang" };
      if (says === "FAIL") return { kind: "status", status: 400 };
      const after = held.get(asked);
      return after ? { kind: "text", tokens: [says], after } : textOf(says);
    },
  });
  const settings = { ROOST_MODEL: "openai:mock", ROOST_OPENAI_BASE_URL: mock.url, ...more.settings };
  const server = await startTestServer(settings, { moreTools, ...options });
  const person = await server.signUp();
  const instance: string = (await person.ask("POST", "/v1/instances", { name: "test" })).body.instanceId;
  const at = (agent: string, path = "") => `/v1/instances/${instance}/agents/${agent}${path}`;
  const events = async (agent: string) => readEvents(await person.fetch("GET", at(agent, "/events?after=0")));
  const it = {
    server,
    mock,
    person,
    instance,
    at,
    events,
    /** What the model says to a message of this text: at its n-th step the n-th of these. */
    when: (text: string, ...says: Says[]) => void scripts.set(text, says),
    /** The text answer to this message comes only once the promise is resolved. */
    holds: (text: string, until: Promise<void>) => void held.set(text, until),
    agent: async (name: string, body: object = {}): Promise<string> =>
      (await person.ask("POST", `/v1/instances/${instance}/agents`, { name, ...body })).body.agentId,
    conversation: async (agent: string): Promise<string> =>
      (await person.ask("POST", at(agent, "/conversations"), {})).body.conversationId,
    /** Sends a message and waits for the answer. */
    send: (agent: string, message: string, body: object = {}) =>
      person.ask("POST", at(agent, "/messages"), { message, ...body }),
    /** Sends a message; returns its run's id. */
    queue: async (agent: string, message: string, body: object = {}): Promise<string> =>
      (await person.ask("POST", at(agent, "/messages"), { message, ...body }, { Prefer: "respond-async" })).body.runId,
    run: async (agent: string, runId: string) => (await person.ask("GET", at(agent, `/runs/${runId}`))).body,
    runs: async (agent: string, query = "") =>
      (await person.ask("GET", at(agent, `/runs?limit=100${query}`))).body.data,
    /** The first event of this type (of this run). */
    async until(agent: string, type: string, runId?: string) {
      await using stream = await events(agent);
      const frames = await stream.until(
        ({ event, data }) => event === type && (runId === undefined || data.runId === runId),
      );
      return frames.at(-1)?.data;
    },
    /** What the tools of the run for this message returned, as its model was told last. */
    results: (text: string): string[] => {
      const last = mock.requests.findLast((request) => askedOf(request) === text);
      return last === undefined ? [] : resultsOf(last);
    },
    async stop() {
      await server.stop();
      await mock.stop();
    },
  };
  return it;
}

/** The ids of the answers with calls since the message: one for each step. */
function stepsOf({ body }: MockRequest): number[] {
  const last = body.messages.findLastIndex(({ role }: { role: string }) => role === "user");
  const steps: number[] = [];
  for (const [place, message] of body.messages.entries())
    if (place > last && message.role === "assistant") steps.push(place);
  return steps;
}

export type Agents = Awaited<ReturnType<typeof startAgents>>;
