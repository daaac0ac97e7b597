import { type Answer, type Person, startTestServer, type TestServer } from "../support/test-server.ts";

export interface BundleWorld {
  server: TestServer;
  person: Person;
  instanceId: string;
  /** Its path in the API. */
  instance: string;
  /** Returns the new agent's id and path. */
  create(agent: object): Promise<{ agentId: string; slug: string; path: string }>;
  export(path: string, query?: string): Promise<Buffer>;
  import(bundle: Uint8Array, query?: string): Promise<Answer>;
}

/** An account with an instance. */
export async function newWorld(server: TestServer): Promise<BundleWorld> {
  const person = await server.signUp();
  const { instanceId } = (await person.ask("POST", "/v1/instances", { name: "home" })).body;
  const instance = `/v1/instances/${instanceId}`;
  return {
    server,
    person,
    instanceId,
    instance,
    async create(agent) {
      const { agentId, slug } = (await person.ask("POST", `${instance}/agents`, agent)).body;
      return { agentId, slug, path: `${instance}/agents/${agentId}` };
    },
    async export(path, query = "") {
      const answer = await person.fetch("GET", `${path}/bundle${query}`);
      if (answer.status !== 200) throw new Error(await answer.text());
      return Buffer.from(await answer.arrayBuffer());
    },
    import: (bundle, query = "") => person.ask("POST", `${instance}/import${query}`, bundle),
  };
}

export const startWorld = async (settings: Record<string, string> = {}): Promise<BundleWorld> =>
  newWorld(await startTestServer(settings));
