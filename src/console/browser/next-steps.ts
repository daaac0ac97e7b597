import { part } from "./dom.ts";

/** What the commands are filled in with, as far as it is known. */
export interface Filling {
  key: string | null;
  instanceId: string | null;
  agentId: string | null;
}

const POST = `  -H "X-API-Key: $KEY" -H 'Content-Type: application/json' \\`;
const keep = (id: string) => `  | tee /dev/stderr | grep -o '${id}_[0-9a-f]*' | head -n 1)`;

/** The whole conversation from a shell, to paste step by step; nothing but curl and grep is needed. */
export function showNextSteps({ key, instanceId, agentId }: Filling): void {
  const fill = (id: string, ...lines: string[]) => {
    part(id, HTMLElement).textContent = lines.join("\n");
  };
  fill("step-key", `URL=${location.origin}`, `KEY=${key ?? "rst_live_…"}`);
  fill(
    "step-instance",
    `INSTANCE=$(curl -s "$URL/v1/instances" \\`,
    POST,
    `  -d '{"name": "From the shell"}' \\`,
    keep("inst"),
  );
  fill(
    "step-agent",
    `AGENT=$(curl -s "$URL/v1/instances/$INSTANCE/agents" \\`,
    POST,
    `  -d '{"name": "Ada"}' \\`,
    keep("agt"),
  );
  fill(
    "step-message",
    `curl -N "$URL/v1/instances/$INSTANCE/agents/$AGENT/messages" \\`,
    POST,
    `  -d '{"message": "Hello! Who are you?", "stream": true}'`,
  );
  fill(
    "step-chat",
    `roost chat ${instanceId ?? "$INSTANCE"} \\`,
    `  ${agentId ?? "$AGENT"} \\`,
    '  --url "$URL" --key "$KEY"',
  );
  part("key-hint", HTMLElement).hidden = key !== null;
}
