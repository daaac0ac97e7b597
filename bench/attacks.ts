/**
 * What a tenant, or a stranger, can do to the others: each as a program that does its worst until it is ended. Run as
 * `bun bench/attacks.ts <name> <target as JSON>` in a process of its own, so that it does not slow down the
 * measurement.
 */
import { connect } from "node:net";
import { AGENT_ATTACKS, ONE_AGENT_ATTACKS, ORDINARY_ATTACKS } from "./agent-attacks.ts";
import { type Ask, type Attack, forever, json, read, type Target } from "./attacker.ts";

export const ATTACKS: Record<string, Attack> = {
  "does nothing": async () => forever(1, () => Bun.sleep(1_000)),
  "lists 40,000 files again and again": async ({ instanceId, agents }, ask) =>
    forever(16, async (turn) => {
      const at = `/v1/instances/${instanceId}/agents`;
      const agent = agents[turn % agents.length];
      await read(
        ask(
          "GET",
          turn % 3 === 0 ? `${at}?limit=100` : turn % 3 === 1 ? `${at}/${agent}` : `${at}/${agent}/files?limit=100`,
        ),
      );
    }),
  "holds back 2,000 bodies of 1 MiB": async ({ url }) => {
    const { hostname, port, host } = new URL(url);
    const body = Buffer.alloc(1024 * 1024 - 10, "a");
    await forever(2_000, async () => {
      await new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname);
        socket.on("error", () => {});
        socket.on("close", () => resolve());
        setTimeout(() => socket.destroy(), 60_000);
        socket.write(
          `POST /v1/auth/send-code HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${1024 * 1024}\r\n\r\n`,
        );
        socket.write(body);
      });
    });
  },
  "opens 2,000 event streams": async ({ instanceId, agents }, ask) =>
    forever(2_000, async (turn) => {
      const response = await ask("GET", `/v1/instances/${instanceId}/agents/${agents[turn % agents.length]}/events`);
      if (response.ok) await new Promise(() => response);
      await response.text();
      await Bun.sleep(100);
    }),
  "uploads files of 256 KiB": async ({ instanceId, agents }, ask) => {
    const text = "x".repeat(256 * 1024);
    await forever(16, async (turn) => {
      const agent = agents[turn % agents.length];
      await read(ask("PUT", `/v1/instances/${instanceId}/agents/${agent}/files/upload-${turn % 500}.md`, text));
    });
  },
  "stores secrets": async ({ instanceId }, ask) =>
    forever(16, async (turn) => {
      const body = { key: `SECRET_${turn % 50}`, value: `${turn}` };
      await read(ask("POST", `/v1/instances/${instanceId}/secrets`, body, { "Idempotency-Key": `secret-${turn}` }));
    }),
  "wakes as many workers as it can": async (_, ask) => {
    const ids: [instance: string, agent: string][] = [];
    await forever(8, async (turn) => {
      if (ids.length < 99) {
        const { instanceId } = (await json(ask("POST", "/v1/instances", { name: `w${turn}` }))) ?? {};
        const { agentId } = (await json(ask("POST", `/v1/instances/${instanceId}/agents`, { name: "w" }))) ?? {};
        if (instanceId && agentId) ids.push([instanceId, agentId]);
      }
      const [instance, agent] = ids[turn % ids.length] ?? [];
      if (instance) await read(ask("POST", `/v1/instances/${instance}/agents/${agent}/messages`, { message: "hi" }));
    });
  },
  "keeps every agent waiting for a model that hangs": async ({ instanceId, agents }, ask) =>
    forever(300, async (turn) => {
      const path = `/v1/instances/${instanceId}/agents/${agents[turn % agents.length]}/messages`;
      await read(ask("POST", path, { message: "attack: hang" }, { Prefer: "respond-async" }));
      await Bun.sleep(200);
    }),
  "guesses codes and keys": async (_, ask) =>
    forever(32, async (turn) => {
      const guess = { email: "bench@example.com", code: String(turn % 100_000_000).padStart(8, "0") };
      await read(
        turn % 2
          ? ask("POST", "/v1/auth/verify-code", guess, { "X-API-Key": "" })
          : ask("GET", "/v1/auth/me", undefined, { "X-API-Key": "rst_live_wrong" }),
      );
    }),
  "writes and reads long messages": async ({ instanceId, agents }, ask) =>
    forever(16, async (turn) => {
      const path = `/v1/instances/${instanceId}/agents/${agents[turn % agents.length]}/messages`;
      if (turn % 2) await read(ask("POST", path, { message: "長".repeat(32_000) }, { Prefer: "respond-async" }));
      else await read(ask("GET", `${path}?limit=100`));
    }),
  "installs skills of 256 KiB and uses them": async ({ instanceId, agents }, ask) => {
    const body = "x".repeat(250 * 1024);
    await forever(8, async (turn) => {
      const name = `skill-${turn % 100}`;
      const files = { "SKILL.md": `---\nname: ${name}\ndescription: Does nothing, at length.\n---\n${body}` };
      if (turn < 100) await read(ask("POST", `/v1/instances/${instanceId}/skills`, { files }));
      const path = `/v1/instances/${instanceId}/agents/${agents[turn % agents.length]}/messages`;
      await read(ask("POST", path, { message: "hi" }));
    });
  },
  "presents transactions that are none": async (_, ask) =>
    forever(8, async (turn) => {
      const txHash = `0x${(turn % 3).toString(16).padStart(64, "0")}`;
      await read(ask("POST", "/v1/billing/top-up", {}, { "X-PAYMENT": JSON.stringify({ txHash, network: "base" }) }));
    }),
  "deletes agents with thousands of files": async ({ instanceId, agents }, ask) => {
    for (const agent of agents) {
      await read(ask("DELETE", `/v1/instances/${instanceId}/agents/${agent}`));
      await Bun.sleep(100);
    }
    await forever(1, () => Bun.sleep(1_000));
  },
  ...ORDINARY_ATTACKS,
  ...ONE_AGENT_ATTACKS,
  ...AGENT_ATTACKS,
};

if (import.meta.main) {
  const [name = "", text = "{}"] = process.argv.slice(2);
  const target = JSON.parse(text) as Target;
  const ask: Ask = (method, path, body, headers = {}) =>
    fetch(new URL(path, target.url), {
      method,
      headers: { "X-API-Key": target.key, "Content-Type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  await ATTACKS[name]?.(target, ask);
}
