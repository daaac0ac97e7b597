import { part } from "./dom.ts";

/** The values filled into the commands, as far as they are known. */
export interface Filling {
  key: string | null;
  instanceId: string | null;
  agentId: string | null;
}

const HEADERS = `  -H "X-API-Key: $ROOST_API_KEY" -H 'Content-Type: application/json' \\`;
/** Shows the response and captures the id in it. */
const idIn = (prefix: string) => `  | tee /dev/stderr | grep -o '${prefix}_[0-9a-f]*' | head -n 1)`;

/** A whole conversation in a shell, to paste step by step; `roost chat` reads the same two variables. */
export function showNextSteps({ key, instanceId, agentId }: Filling): void {
  const fill = (id: string, ...lines: string[]) => {
    part(id, HTMLElement).textContent = lines.join("\n");
  };
  fill("step-key", `export ROOST_URL=${location.origin}`, `export ROOST_API_KEY=${key ?? "rst_live_…"}`);
  fill(
    "step-instance",
    'INSTANCE=$(curl -s "$ROOST_URL/v1/instances" \\',
    HEADERS,
    `  -d '{"name": "From the shell"}' \\`,
    idIn("inst"),
  );
  fill(
    "step-agent",
    'AGENT=$(curl -s "$ROOST_URL/v1/instances/$INSTANCE/agents" \\',
    HEADERS,
    `  -d '{"name": "Ada"}' \\`,
    idIn("agt"),
  );
  fill(
    "step-message",
    'curl -N "$ROOST_URL/v1/instances/$INSTANCE/agents/$AGENT/messages" \\',
    HEADERS,
    `  -d '{"message": "Hello! Who are you?", "stream": true}'`,
  );
  fill("step-chat", `roost chat ${instanceId ?? "$INSTANCE"} \\`, `  ${agentId ?? "$AGENT"}`);
  part("key-hint", HTMLElement).hidden = key !== null;
}
