import { z } from "zod";
import type { Agents } from "../agents/agents.ts";
import { streamHead } from "../http/answer.ts";
import { trimmedText } from "../http/fields.ts";
import type { LastingAnswers } from "../http/lasting-answers.ts";
import { type Route, route } from "../http/route.ts";
import type { Instances } from "../instances/instances.ts";
import type { Bundle, Exports } from "./export.ts";
import type { Imports } from "./import.ts";
import { ImportRecord, showImported } from "./record.ts";

export interface BundleRouteParts {
  instances: Pick<Instances, "get">;
  agents: Pick<Agents, "get">;
  exports: Exports;
  imports: Imports;
  lasting: LastingAnswers;
  /** Turns off the idle timeout of a request's connection. */
  keepOpen(request: Request): void;
}

/** A download that takes longer is ended: its archive takes up space on the disk. */
const DOWNLOAD_MS = 10 * 60 * 1000;

const HISTORY_FORM = "true or false";

export function bundleRoutes({ instances, agents, exports, imports, lasting, keepOpen }: BundleRouteParts): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/instances/:instanceId/agents/:agentId/bundle",
      name: "exportInstanceAgent",
      tag: "agents",
      summary: "Export an agent as one file",
      access: "read",
      bound: "bundle",
      query: z.object({
        history: z
          .enum(["true", "false"], { error: HISTORY_FORM })
          .optional()
          .describe("Whether its conversations are in it; by default they are not"),
      }),
      answer: "application/gzip",
      errors: ["conflict"],
      find: ({ caller, params }) => agents.get(caller, params.instanceId, params.agentId),
      async handle({ caller, find, query, request }) {
        const withHistory = query().history === "true";
        const headers = {
          "Content-Type": "application/gzip",
          "Content-Disposition": `attachment; filename="${find().agent.slug}.tar.gz"`,
          "Cache-Control": "no-store",
          "X-Content-Type-Options": "nosniff",
        };
        if (request.method === "HEAD") return streamHead(headers);
        const place = lasting.open(caller, "bundle");
        keepOpen(request);
        try {
          const bundle = await exports.pack(find, { withHistory });
          // What the download costs is counted by its length, though the runtime sends a stream without it.
          const length = { "Content-Length": String(bundle.size) };
          return new Response(streamOf(bundle, place), { headers: { ...headers, ...length } });
        } catch (error) {
          place.close();
          throw error;
        }
      },
    }),
    route({
      method: "POST",
      path: "/v1/instances/:instanceId/import",
      name: "importInstanceAgent",
      tag: "agents",
      summary: "Create an agent from a bundle; nothing of it is run, and what allows anything is switched off",
      access: "write",
      bound: "record",
      query: z.object({ name: trimmedText(1, 100).optional().describe("In place of the name in the bundle") }),
      body: "application/gzip",
      status: 201,
      answer: ImportRecord,
      errors: ["conflict"],
      find: ({ caller, params }) => instances.get(caller, params.instanceId),
      commit: "shared",
      async handle({ find, query, body, commit, request }) {
        const { name = null } = query();
        const archive = await body();
        keepOpen(request);
        return await imports.import(find, archive, name, (operate) => commit((found) => showImported(operate(found))));
      },
    }),
  ];
}

/** A bundle as it is read by its client, until it is read, or has lasted too long, or the credential is not valid any more. */
function streamOf(bundle: Bundle, place: ReturnType<LastingAnswers["open"]>): ReadableStream<Uint8Array> {
  const chunks = bundle.chunks();
  let late: Timer | undefined;
  const close = () => {
    clearTimeout(late);
    bundle.close();
    place.close();
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const end = () => {
          controller.error(new Error("the download was ended"));
          close();
        };
        late = setTimeout(end, DOWNLOAD_MS);
        late.unref();
        place.endWith(end);
      },
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          close();
          throw error;
        }
        close();
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}
