import { z } from "zod";
import type { Caller } from "../accounts/caller.ts";
import { Reply } from "../http/answer.ts";
import { flag, needsOneOf, trimmedText } from "../http/fields.ts";
import { pageOf, pageQuery, toPage } from "../http/paging.ts";
import { type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import { AppError } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import type { FileChange } from "../workspace/workspace.ts";
import type { Agents } from "./agents.ts";
import { AgentRecord, FileRecord, ListedAgent, showFile, showListed, showWithTexts } from "./record.ts";
import { SLUG } from "./slug.ts";
import { MAX_FILES_PER_REQUEST, type Workspaces } from "./workspaces.ts";

type AgentNames = Pick<z.infer<typeof AgentRecord>, "instanceId" | "agentId">;

const SLUG_FORM = "1 to 63 of a-z, 0-9 and -, not beginning with -";
const MODEL_FORM = "local:<name> or openai:<name>, or null for the host's default";
const FILES_FORM = `an object of at most ${MAX_FILES_PER_REQUEST} file names, each with its text`;

const name = trimmedText(1, 100);
const slug = z
  .string({ error: SLUG_FORM })
  .regex(SLUG, { error: SLUG_FORM })
  .meta({ examples: ["ada"] });
const model = z
  .string({ error: MODEL_FORM })
  .max(200, { error: MODEL_FORM })
  .regex(/^(local|openai):\S+$/, { error: MODEL_FORM })
  .meta({ examples: ["local:smollm2-135m-instruct"] })
  .nullish();
/** Name → text. Not a `z.record`, which drops the name `__proto__`. */
const filesOf = (expected: string, isContent: (content: unknown) => boolean) =>
  z
    .unknown()
    .transform((given, { issues }): FileChange[] => {
      const refuse = (message: string, path: string[] = []) => {
        issues.push({ code: "custom", input: undefined, message, path });
        return z.NEVER;
      };
      if (typeof given !== "object" || given === null || Array.isArray(given)) return refuse(FILES_FORM);
      const files = Object.entries(given).map(([name, content]) => ({ name, content }));
      if (files.length > MAX_FILES_PER_REQUEST) return refuse(FILES_FORM);
      const wrong = files.find(({ content }) => !isContent(content));
      return wrong ? refuse(expected, [wrong.name]) : files;
    })
    .meta({ type: "object", maxProperties: MAX_FILES_PER_REQUEST });
const isText = (content: unknown) => typeof content === "string";

const NewAgentInput = z.object({
  name,
  slug: slug.nullish(),
  displayName: name.nullish(),
  useDefaults: flag.nullish(),
  files: filesOf("text", isText).nullish(),
  model,
});
const AgentChangeInput = z
  .object({
    name: name.optional(),
    slug: slug.optional(),
    displayName: name.optional(),
    useDefaults: z.literal(true, { error: "true, to put back missing default files" }).optional(),
    files: filesOf("text, or null to delete the file", (content) => content === null || isText(content)).optional(),
    model,
  })
  .meta(needsOneOf("name", "slug", "displayName", "model", "files", "useDefaults"));

const AGENTS = "/v1/instances/:instanceId/agents";

export function agentRoutes(instances: Instances, agents: Agents, workspaces: Workspaces): Route[] {
  /** The caller's agent, its workspace as an operator may have left it. Throws `not_found`. */
  async function withFreshWorkspace(caller: Caller, { instanceId, agentId }: Record<"instanceId" | "agentId", string>) {
    const { agent } = agents.get(caller, instanceId, agentId);
    const known = workspaces.reindexing.ready([agent]);
    if (known !== null) await known;
    workspaces.refresh(agent);
    return known === null ? { agent } : agents.get(caller, instanceId, agentId);
  }
  const conditionOf = ({ headers }: Request) => ({
    ifMatch: headers.get("if-match"),
    ifNoneMatch: headers.get("if-none-match"),
  });

  const oneAgent = route({
    method: "GET",
    path: `${AGENTS}/:agentId`,
    summary: "One agent with its workspace's texts",
    access: "read",
    bound: "texts",
    answer: AgentRecord,
    errors: ["instance_not_ready"],
    async handle({ caller, params }) {
      const { agent } = await withFreshWorkspace(caller, params);
      return showWithTexts({ agent, texts: workspaces.texts(agent) });
    },
  });

  return [
    route({
      method: "POST",
      path: AGENTS,
      summary: "Create an agent with its persona",
      access: "write",
      bound: "texts",
      body: NewAgentInput,
      status: 201,
      answer: AgentRecord,
      errors: ["conflict"],
      reread: { by: oneAgent, params: ({ instanceId, agentId }: AgentNames) => ({ instanceId, agentId }) },
      async handle({ caller, params, body, once }) {
        const find = () => instances.get(caller, params.instanceId);
        find();
        const { name, slug = null, displayName = null, useDefaults, files, model = null } = await body();
        const input = { name, slug, displayName, useDefaults: useDefaults ?? true, files: files ?? [], model };
        return agents.create(find, input, (operate) => once(() => showWithTexts(operate())));
      },
    }),
    route({
      method: "GET",
      path: AGENTS,
      summary: "List agents, oldest first",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(ListedAgent),
      errors: ["instance_not_ready"],
      async handle({ caller, params, query, startPage }) {
        const { instanceId } = instances.get(caller, params.instanceId);
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
      summary: "Change an agent and its files, all or nothing",
      access: "write",
      bound: "texts",
      body: AgentChangeInput,
      answer: AgentRecord,
      errors: ["conflict", "instance_not_ready"],
      async handle({ caller, params, body, once }) {
        const find = () => agents.get(caller, params.instanceId, params.agentId);
        find();
        const change = given(await body());
        if (Object.keys(change).length === 0) {
          throw new AppError(
            "invalid_request",
            "body: expected at least one of name, slug, displayName, model, files, useDefaults",
          );
        }
        await withFreshWorkspace(caller, params);
        return agents.update(find, change, (operate) => once(() => showWithTexts(operate())));
      },
    }),
    route({
      method: "DELETE",
      path: `${AGENTS}/:agentId`,
      summary: "Delete an agent with its workspace and history",
      access: "write",
      bound: "record",
      answer: z.object({ agentId: idForm("agt"), deleted: z.literal(true) }),
      handle({ caller, params, once }) {
        const find = () => agents.get(caller, params.instanceId, params.agentId);
        return agents.remove(find, (operate) => once(() => ({ agentId: operate(), deleted: true })));
      },
    }),
    route({
      method: "GET",
      path: `${AGENTS}/:agentId/files`,
      summary: "List the files of a workspace",
      access: "read",
      bound: "page",
      query: pageQuery,
      answer: pageOf(FileRecord),
      errors: ["instance_not_ready"],
      async handle({ caller, params, query, startPage }) {
        const { agent } = await withFreshWorkspace(caller, params);
        const start = startPage(`files ${agent.agentId}`, query());
        const files = workspaces.list(agent, start.position ?? "", start.limit + 1);
        return toPage(start, files, (file) => file.name, showFile);
      },
    }),
    route({
      method: "GET",
      path: `${AGENTS}/:agentId/files/*`,
      summary: "Read a workspace file",
      access: "read",
      bound: "texts",
      answer: "text/plain",
      handle({ caller, params, request }) {
        const { agent } = agents.get(caller, params.instanceId, params.agentId);
        const { bytes, etag, updatedAtMs } = workspaces.read(agent, fileName(params["*"]));
        const headers = {
          ETag: etag,
          "Last-Modified": new Date(updatedAtMs).toUTCString(),
          "Cache-Control": "no-store",
          "Content-Type": "text/plain; charset=utf-8",
          // The text is a tenant's: a browser must never take it for a page of this origin.
          "X-Content-Type-Options": "nosniff",
          "Content-Security-Policy": "default-src 'none'; sandbox",
        };
        const unchanged = request.headers
          .get("if-none-match")
          ?.split(",")
          .map((tag) => tag.trim().replace(/^W\//, ""))
          .some((tag) => tag === etag || tag === "*");
        return unchanged
          ? new Response(null, { status: 304, headers })
          : new Response(new Uint8Array(bytes), { headers });
      },
    }),
    route({
      method: "PUT",
      path: `${AGENTS}/:agentId/files/*`,
      summary: "Write a workspace file",
      access: "write",
      bound: "record",
      answer: FileRecord,
      errors: ["precondition_failed", "conflict", "instance_not_ready"],
      async handle({ caller, params, bytes, request, once }) {
        const find = () => agents.get(caller, params.instanceId, params.agentId);
        find();
        const content = await bytes();
        const known = workspaces.reindexing.ready([find().agent]);
        if (known !== null) await known;
        const condition = conditionOf(request);
        return agents.writeFile(find, fileName(params["*"]), content, condition, (operate) =>
          once(() => {
            const { created, file, etag } = operate();
            return new Reply(created ? 201 : 200, showFile(file), { ETag: etag });
          }),
        );
      },
    }),
    route({
      method: "DELETE",
      path: `${AGENTS}/:agentId/files/*`,
      summary: "Delete a workspace file",
      access: "write",
      bound: "record",
      answer: z.object({ name: z.string(), deleted: z.literal(true) }),
      errors: ["precondition_failed"],
      async handle({ caller, params, request, once }) {
        const find = () => agents.get(caller, params.instanceId, params.agentId);
        find();
        const name = fileName(params["*"]);
        await agents.deleteFile(find, name, conditionOf(request), once);
        return { name, deleted: true };
      },
    }),
  ];
}

/** The fields that were given; a `model` of null is one, an absent field is not. */
const given = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };

/** The tail of the path: the router leaves it encoded. */
function fileName(tail: string): string {
  try {
    return decodeURIComponent(tail);
  } catch {
    throw new AppError("invalid_request", "file: expected a name in percent-encoding");
  }
}
