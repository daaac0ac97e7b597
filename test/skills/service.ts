import { readEmbeddedFolder } from "../../src/lib/embedded-folder.ts";
import { parseSkill, type Skill } from "../../src/skills/skill-file.ts";

/** A built-in skill. */
export function builtIn(name: string): Skill {
  const files = [...readEmbeddedFolder("skills")].flatMap(([path, text]) =>
    path.startsWith(`${name}/`) ? [[path.slice(name.length + 1), text] as const] : [],
  );
  return parseSkill(new Map(files), name);
}

/** What `http_request` takes. */
export interface AskedRequest {
  method: string;
  url: string;
  headers?: Record<string, string>;
  body?: string;
}

/** The requests that the instructions show, in their order. */
export const requestsIn = ({ instructions }: Skill): AskedRequest[] =>
  Array.from(instructions.matchAll(/^ *```json\n([\s\S]*?)^ *```$/gm), ([, block]) => JSON.parse(block ?? "")).filter(
    (shown) => typeof shown.url === "string",
  );

export interface Service extends AsyncDisposable {
  /** The request as `http_request` sends it: to a host that the skill declares, with the values of its secrets. */
  send(request: AskedRequest): Promise<{ status: number; body: string }>;
}

/** A stand-in for the hosts of a skill. It gets each request with its host as it was meant. */
export function startService(
  skill: Skill,
  secrets: Record<string, string>,
  answer: (request: Request, url: URL) => Response | Promise<Response>,
): Service {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => answer(request, new URL(request.headers.get("x-asked") ?? "")),
  });
  return {
    async send({ method, url, headers = {}, body }) {
      const asked = new URL(url);
      if (asked.protocol !== "https:") throw new Error(`${url}: expected https`);
      if (!skill.requires.hosts.includes(asked.host)) throw new Error(`${asked.host} is not declared`);
      const fill = (text: string) =>
        text.replace(/\{\{secret:(\w+)\}\}/g, (_, name) => {
          if (!skill.secretHosts[name]?.includes(asked.host)) throw new Error(`${name} may not go to ${asked.host}`);
          return secrets[name] ?? "";
        });
      const filled = Object.entries(headers).map(([name, value]): [string, string] => [name, fill(value)]);
      const response = await fetch(`http://127.0.0.1:${server.port}${asked.pathname}${asked.search}`, {
        method,
        headers: [...filled, ["x-asked", asked.href]],
        body: body === undefined ? null : fill(body),
      });
      return { status: response.status, body: await response.text() };
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
}
