import { newUsage } from "../messages/runs/progress.ts";
import type { Answer } from "./answering.ts";
import { chatChunks } from "./chat-answer.ts";
import { openResponse, responseEvents } from "./response-answer.ts";
import type { AnswerWriter } from "./stream.ts";

/** What the reference shows of streams: written as answers are, so that it cannot be another form than theirs. */

const AGENT = "agt_0190f5e2c4a87b3d8e1f6a2b4c5d7e90";
const CREATED_MS = Date.parse("2026-11-22T10:00:00.000Z");
const PIECES = ["A slim novel: ", "it ends before the journey does."];
const ANSWER: Answer = {
  text: PIECES.join(""),
  calls: [],
  finish: "stop",
  usage: { ...newUsage(), promptTokens: 21, completionTokens: 12 },
  model: "local:smollm2-135m-instruct",
  steps: 1,
  isTainted: false,
};

const written = (writer: AnswerWriter): string =>
  [writer.begin(), ...PIECES.map(writer.text), writer.end(ANSWER)].join("");

export const chatStreamExample = (): string => {
  const heading = { id: "chatcmpl-0190f5e2c4a87b3d8e1f6a2b4c5d7e90", created: CREATED_MS / 1000, model: AGENT };
  return written(chatChunks(heading, false, ({ message }) => message));
};

export const responseStreamExample = (): string =>
  written(responseEvents(openResponse("resp_0190f5e2c4a87b3d8e1f6a2b4c5d7e90", { model: AGENT }, CREATED_MS)));
