import { z } from "zod";
import { Reply } from "../http/answer.ts";
import { changeOf, flag, modelLimits, trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Asked, type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import { AppError } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import type { Agents, FoundAgent } from "./agents.ts";
import { changedFiles, heartbeat, model, newFiles, policies, slug } from "./input.ts";
import { namesWeakly } from "./preconditions.ts";
import { AgentRecord, FileRecord, ListedAgent, showFile, showListed, showWithTexts } from "./record.ts";
import type { Agent } from "./schema.ts";
import type { Workspaces } from "./workspaces.ts";

const name = trimmedText(1, 100);
const NewAgentInput = z.lazy(() =>
  z.object({
    name,
    slug: slug.nullish(),
    displayName: name.nullish(),
    useDefaults: flag.nullish(),
    files: newFiles.nullish(),
    model,
    tools: policies.optional(),
    heartbeat: heartbeat.optional(),
  }),
);
const AgentChangeInput = z.lazy(() =>
  changeOf({
    name: name.optional(),
    slug: slug.optional(),
    displayName: name.optional(),
    model,
    modelLimits: modelLimits.optional(),
    files: changedFiles.optional(),
    useDefaults: z.literal(true, { error: "true, to put back missing default files" }).optional(),
    tools: policies.optional(),
    heartbeat: heartbeat.optional(),
  }),
);

const AGENTS = "/v1/instances/:instanceId/agents";

export function agentRoutes(instances: Instances, agents: Agents, workspaces: Workspaces): Route[] {
  const instance = ({ caller, params }: Asked<{ instanceId: string }>) => instances.get(caller, params.instanceId);
  const own = ({ caller, params }: Asked<{ instanceId: string; agentId: string }>) =>
    agents.get(caller, params.instanceId, params.agentId);

  /**
   * The agent, after its workspace was compared with the disk, which an operator may have changed. Throws `not_found`.
   */
  async function withFreshWorkspace({ agent }: FoundAgent, find: () => FoundAgent): Promise<Agent> {
    const known = workspaces.reindexing.ready([agent]);
    if (known !== null) await known;
    workspaces.refresh(agent);
    return known === null ? agent : find().agent;
  }
  const conditionOf = ({ headers }: Request) => ({
    ifMatch: headers.get("if-match"),
    ifNoneMatch: headers.get("if-none-match"),
  });

  const oneAgent = route({
    method: "GET",
    path: `${AGENTS}/:agentId`,
    name: "getInstanceAgent",
    tag: "agents",
    summary: "One agent with its workspace's texts",
    access: "read",
    bound: "texts",
    answer: AgentRecord,
    errors: ["instance_not_ready"],
    find: own,
    async handle({ found, find }) {
      const agent = await withFreshWorkspace(found, find);
      return showWithTexts({ agent, texts: workspaces.texts(agent) });
    },
  });

  return [
    route({
      method: "POST",
      path: AGENTS,
      name: "createInstanceAgent",
      tag: "agents",
      summary: "Create an agent with its persona",
      description: "Its workspace gets the host's default files besides those given, unless `useDefaults` is false.",
      access: "write",
      bound: "texts",
      body: NewAgentInput,
      example: {
        name: "Librarian",
        files: { "SOUL.md": "You are a warm, well-read librarian. Answer in two sentences." },
      },
      status: 201,
      answer: AgentRecord,
      errors: ["conflict"],
      reread: { by: oneAgent, id: "agentId" },
      find: instance,
      commit: "shared",
      async handle({ find, body, commit }) {
        const {
          name,
          slug = null,
          displayName = null,
          model = null,
          tools = {},
          heartbeat = null,
          ...rest
        } = await body();
        const { useDefaults, files } = { useDefaults: rest.useDefaults ?? true, files: rest.files ?? [] };
        const input = { name, slug, displayName, useDefaults, files, model, tools, heartbeat };
        return agents.create(find, input, (operate) => commit((found) => showWithTexts(operate(found))));
      },
    }),
    route({
      method: "GET",
      path: AGENTS,
      name: "listInstanceAgents",
      tag: "agents",
      summary: "List agents, oldest first",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(ListedAgent),
      errors: ["instance_not_ready"],
      find: instance,
      async handle({ found: { instanceId }, query, startPage }) {
        const start = startPage(`agents ${instanceId}`, query());
        const read = () => agents.list(instanceId, start.position, start.limit + 1);
        let rows = read();
        const known = workspaces.reindexing.ready(rows);
        if (known !== null) {
          await known;
          rows = read();
        }
        const names = workspaces.names(rows.slice(0, start.limit));
        return toPage(
          start,
          rows,
          (row) => row.agentId,
          (row) => showListed(row, names.get(row.agentId)),
        );
      },
    }),
    oneAgent,
    route({
      method: "PATCH",
      path: `${AGENTS}/:agentId`,
      name: "updateInstanceAgent",
      tag: "agents",
      summary: "Change an agent and its files, all or nothing",
      description: "Only what is given changes. A file that is null is removed.",
      access: "write",
      bound: "texts",
      body: AgentChangeInput,
      example: { displayName: "The librarian", tools: { write_file: "ask" } },
      answer: AgentRecord,
      errors: ["conflict", "instance_not_ready"],
      find: own,
      commit: "shared",
      async handle({ find, body, commit }) {
        const change = given(await body());
        await withFreshWorkspace(find(), find);
        return agents.update(find, change, (operate) => commit((found) => showWithTexts(operate(found))));
      },
    }),
    route({
      method: "DELETE",
      path: `${AGENTS}/:agentId`,
      name: "deleteInstanceAgent",
      tag: "agents",
      summary: "Delete an agent with its workspace and history",
      access: "write",
      bound: "record",
      answer: z.object({ agentId: idForm("agt"), deleted: z.literal(true) }),
      find: own,
      commit: "shared",
      handle: ({ find, commit }) =>
        agents.remove(find, (operate) => commit((found) => ({ agentId: operate(found), deleted: true }))),
    }),
    route({
      method: "GET",
      path: `${AGENTS}/:agentId/files`,
      name: "listAgentFiles",
      tag: "files",
      summary: "List the files of a workspace",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(FileRecord),
      errors: ["instance_not_ready"],
      find: own,
      async handle({ found, find, query, startPage }) {
        const agent = await withFreshWorkspace(found, find);
        const start = startPage(`files ${agent.agentId}`, query());
        const files = workspaces.list(agent, start.position ?? "", start.limit + 1);
        return toPage(start, files, (file) => file.name, showFile);
      },
    }),
    route({
      method: "GET",
      path: `${AGENTS}/:agentId/files/*`,
      name: "getAgentFile",
      tag: "files",
      summary: "Read a workspace file",
      access: "read",
      bound: "texts",
      answer: "text/plain",
      find: own,
      handle({ found: { agent }, params, request }) {
        const { bytes, etag, updatedAtMs } = workspaces.read(agent, fileName(params["*"]));
        const headers = {
          ETag: etag,
          "Last-Modified": new Date(updatedAtMs).toUTCString(),
          "Cache-Control": "no-store",
          "Content-Type": "text/plain; charset=utf-8",
          // The text is a tenant's: a browser must never show it as a page of this origin.
          "X-Content-Type-Options": "nosniff",
          "Content-Security-Policy": "default-src 'none'; sandbox",
        };
        const { ifNoneMatch } = conditionOf(request);
        return ifNoneMatch !== null && namesWeakly(ifNoneMatch, etag)
          ? new Response(null, { status: 304, headers })
          : // Bun says the length only when it sends the answer, and its reader is charged for it before.
            new Response(new Uint8Array(bytes), {
              headers: { ...headers, "Content-Length": String(bytes.byteLength) },
            });
      },
    }),
    route({
      method: "PUT",
      path: `${AGENTS}/:agentId/files/*`,
      name: "putAgentFile",
      tag: "files",
      summary: "Write a workspace file",
      description:
        "The body is the file's text, UTF-8. With `If-Match` it is written only over the version that was read, with `If-None-Match: *` only if it is new.",
      access: "write",
      bound: "record",
      body: "text/plain",
      example: "# Notes\n\nTrains on Sundays.\n",
      answer: FileRecord,
      errors: ["precondition_failed", "conflict", "instance_not_ready"],
      find: own,
      commit: "shared",
      async handle({ find, params, body, request, commit }) {
        const content = await body();
        const known = workspaces.reindexing.ready([find().agent]);
        if (known !== null) await known;
        const condition = conditionOf(request);
        return agents.writeFile(find, fileName(params["*"]), content, condition, (operate) =>
          commit((found) => {
            const { created, file, etag } = operate(found);
            return new Reply(created ? 201 : 200, showFile(file), { ETag: etag });
          }),
        );
      },
    }),
    route({
      method: "DELETE",
      path: `${AGENTS}/:agentId/files/*`,
      name: "deleteAgentFile",
      tag: "files",
      summary: "Delete a workspace file",
      access: "write",
      bound: "record",
      answer: z.object({ name: z.string(), deleted: z.literal(true) }),
      errors: ["precondition_failed"],
      find: own,
      commit: "shared",
      async handle({ find, params, request, commit }) {
        const name = fileName(params["*"]);
        await agents.deleteFile(find, name, conditionOf(request), commit);
        return { name, deleted: true };
      },
    }),
  ];
}

/** The fields that are present; a `model` of null counts. */
const given = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };

/** The rest of the path, which the router leaves encoded. */
function fileName(tail: string): string {
  try {
    return decodeURIComponent(tail);
  } catch {
    throw new AppError("invalid_request", "file: expected a name in percent-encoding");
  }
}
