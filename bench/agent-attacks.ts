/** What a tenant's agents can do to the others: a model that never stops calling tools decides what they do. */
import { type Ask, type Attack, forever, json, read, type Target } from "./attacker.ts";

/** Runs of one agent that may be in progress, each in a conversation of its own. */
const CONVERSATIONS = 4;
/** How often each agent is told to go on: a message that waits goes on at once. */
const PAUSE_MS = 500;

/** What one agent does, with all the runs that an agent may have. */
export const ONE_AGENT_ATTACKS: Record<string, Attack> = {
  "loops an endless script in one agent": (target, ask) => drive(ask, target, "endless", 1),
  "fills its disk by one agent": (target, ask) => drive(ask, target, "fill", 1),
  "floods tools in one agent": (target, ask) => drive(ask, target, "flood", 1),
  "has one agent ask servers that hang": (target, ask) => drive(ask, target, "fetch", 1),
};

/** What all agents of an account do at once. */
export const AGENT_ATTACKS: Record<string, Attack> = {
  "runs endless scripts in every agent": (target, ask) => drive(ask, target, "loop"),
  "floods tools in every agent": (target, ask) => drive(ask, target, "flood"),
  "floods its log with plans": (target, ask) => drive(ask, target, "plan"),
  "fills its disk by every agent": (target, ask) => drive(ask, target, "fill"),
  "has every agent read long files": async (target, ask) => {
    const text = `${"a long line of a long file ".repeat(60)}\n`.repeat(100);
    const { instanceId } = target;
    for (const agent of target.agents) {
      await read(ask("PUT", `/v1/instances/${instanceId}/agents/${agent}/files/long.md`, text));
    }
    await drive(ask, target, "read");
  },
  "has every agent ask servers that hang": (target, ask) => drive(ask, target, "fetch"),
  "has every agent ask a server that answers in tiny chunks": (target, ask) => drive(ask, target, "chunks"),
};

/** The same without any tools: what the messages alone do that keep the agents at it. */
export const ORDINARY_ATTACKS: Record<string, Attack> = {
  "sends as many messages": (target, ask) => drive(ask, target, "nothing"),
};

/** Has as many runs in progress as allowed, for ever, with a model of the attacker's own in a process of its own. */
async function drive(
  ask: Ask,
  { instanceId, agents, model }: Target,
  attack: string,
  count = agents.length,
): Promise<void> {
  await read(ask("POST", `/v1/instances/${instanceId}/secrets`, { key: "OPENAI_BASE_URL", value: model }));
  const paths = agents.slice(0, count).map((agent) => `/v1/instances/${instanceId}/agents/${agent}`);
  const places: { path: string; conversationId: string | undefined }[] = [];
  for (const path of paths) {
    for (let number = 0; number < CONVERSATIONS; number++) {
      const made = await json(ask("POST", `${path}/conversations`, { title: `${number}` }));
      places.push({ path, conversationId: made?.conversationId });
    }
  }
  await forever(places.length, async (turn) => {
    const { path, conversationId } = places[turn % places.length] ?? {};
    const message = { message: `attack: ${attack}`, conversationId };
    await read(ask("POST", `${path}/messages`, message, { Prefer: "respond-async" }));
    await Bun.sleep(PAUSE_MS);
  });
}
