import { z } from "zod";
import { type Route, route } from "../http/route.ts";
import { notFound } from "../lib/app-error.ts";
import { idForm } from "../lib/forms.ts";
import type { Caller } from "../limits/caller.ts";
import type { AgentModels } from "./models.ts";
import { answeredResponse, openResponse, ResponseRecord } from "./response-answer.ts";
import type { StoredResponses } from "./stored-responses.ts";

const RESPONSE = "/v1/responses/:responseId";

/** What clients do with responses that are kept (docs/contract/api.md, Responses). */
export function storedResponseRoutes(models: AgentModels, stored: StoredResponses): Route[] {
  function own({ caller, params }: { caller: Caller; params: { responseId: string } }) {
    const response = stored.get(params.responseId);
    const found = response && models.find(caller, response.agentId);
    if (!response || !found) throw notFound("response");
    return { ...found, response };
  }

  return [
    route({
      method: "GET",
      path: RESPONSE,
      name: "getResponse",
      tag: "chat",
      summary: "A response that is kept, without the settings of its request",
      access: "chat",
      bound: "texts",
      errorForm: "openai",
      answer: ResponseRecord,
      find: own,
      handle({ found: { response } }) {
        const { responseId, agentId, previousId, createdAt, answer } = response;
        const request = { model: agentId, previous_response_id: previousId };
        return answeredResponse(openResponse(responseId, request, createdAt), answer);
      },
    }),
    route({
      method: "DELETE",
      path: RESPONSE,
      name: "deleteResponse",
      tag: "chat",
      summary: "Delete a response, and its conversation with the last response in it",
      access: "chat",
      bound: "record",
      errorForm: "openai",
      answer: z.object({ id: idForm("resp"), object: z.literal("response"), deleted: z.literal(true) }),
      find: own,
      commit: "shared",
      write({ found: { agent, response } }) {
        stored.remove(agent, response);
        return { id: response.responseId, object: "response", deleted: true };
      },
    }),
  ];
}
