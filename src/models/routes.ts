import { z } from "zod";
import { type Route, route } from "../http/route.ts";
import { record } from "../lib/record.ts";
import type { NearbyOllama } from "./ollama.ts";

export interface HostRouteParts {
  /** The model of agents that name none. */
  model: string;
  /** Null if the operator has chosen a model already. */
  offer: { ollama: () => Promise<NearbyOllama | null>; settingsFile: string } | null;
  /** Whether the request comes from this machine itself, not through a proxy. */
  isFromHere(request: Request): boolean;
}

const HostRecord = record("Host", () =>
  z.object({
    model: z.string(),
    ollama: z
      .object({ baseUrl: z.string(), models: z.array(z.string()), settingsFile: z.string() })
      .nullable()
      .describe(
        "Only for requests from the host's own machine, if no other model was chosen and Ollama is running there",
      ),
  }),
);

/** What the console shows about the host's model, and how the operator could get a stronger one. */
export function hostRoutes({ model, offer, isFromHere }: HostRouteParts): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/host",
      name: "getHost",
      tag: "host",
      summary: "The default model of agents; on the host's own machine also an Ollama that could be used",
      access: "read",
      bound: "outside",
      answer: HostRecord,
      async handle({ request }) {
        // What runs on the machine, and where its files are, is shown only to requests from the machine itself.
        const found = offer !== null && isFromHere(request) ? await offer.ollama() : null;
        return { model, ollama: offer && found && { ...found, settingsFile: offer.settingsFile } };
      },
    }),
  ];
}
