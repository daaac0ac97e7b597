import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config.ts";
import { AnswerTooLong, readBoundedText } from "../../lib/bounded-text.ts";
import { OUTGOING } from "../../limits/outgoing.ts";
import { createMail } from "../../mail/mail.ts";
import { locateModelFiles } from "../../models/local/files.ts";
import { findOllama } from "../../models/ollama.ts";
import { jailLevel } from "../../workspace/jail.ts";
import { type Finding, ill, well } from "./finding.ts";

const KEPT_BY = { openat2: "the kernel", portable: "a look at each part of a name" };

/** What code of agents and skills runs in, and what keeps the names of their files in the workspace. */
export const checkSandbox = (): Finding =>
  well(`none: this version runs no code of agents or skills; ${KEPT_BY[jailLevel()]} keeps files in their workspace`);

const { deadlineMs, answerBytes } = OUTGOING.modelList;

/** The host's default model could answer: its files are there, or its server is. */
export async function checkModel(config: Pick<Config, "model" | "openAiBaseUrl" | "openAiApiKey">): Promise<Finding> {
  const { model, openAiBaseUrl } = config;
  if (model.startsWith("local:")) return checkLocalModel(model);
  if (openAiBaseUrl === null) return ill(`${model} needs a server`, "set ROOST_OPENAI_BASE_URL");
  return checkModelServer(model.slice("openai:".length), openAiBaseUrl, config.openAiApiKey);
}

async function checkLocalModel(model: string): Promise<Finding> {
  // What is inside the binary is whole, or the binary would not have started.
  if (Bun.isStandaloneExecutable) return small(`${model} is in the binary`);
  const { modelsFolder, library } = await locateModelFiles("");
  const needed = [library, join(modelsFolder, model.slice("local:".length), "onnx/model_q4.onnx")];
  const missing = needed.find((path) => !existsSync(path));
  if (missing !== undefined) return ill(`${missing} is not there`, "check the sources out whole, then npm install");
  return small(`${model} is in the checkout`);
}

/** Nobody should take it for more than it is, or not know how to have more. */
async function small(where: string): Promise<Finding> {
  const ollama = await findOllama();
  const stronger =
    ollama === null
      ? "for a stronger one, set ROOST_MODEL=openai:NAME and ROOST_OPENAI_BASE_URL"
      : `an Ollama answers here: set ROOST_MODEL=openai:${ollama.models[0]} and ROOST_OPENAI_BASE_URL=${ollama.baseUrl}`;
  return well(`${where}: it chats, and is weak on facts, arithmetic and tools; ${stronger}`);
}

async function checkModelServer(name: string, baseUrl: string, apiKey: string | null): Promise<Finding> {
  const url = `${baseUrl.replace(/\/+$/, "")}/models`;
  let answer: Response;
  let body: unknown;
  try {
    const headers: Record<string, string> = apiKey === null ? {} : { Authorization: `Bearer ${apiKey}` };
    answer = await fetch(url, { headers, redirect: "error", signal: AbortSignal.timeout(deadlineMs) });
    body = parsed(await readBoundedText(answer, answerBytes));
  } catch (error) {
    if (error instanceof AnswerTooLong) {
      return ill(
        `${url} answered with more than ${answerBytes} bytes`,
        "correct ROOST_OPENAI_BASE_URL: it takes the /v1",
      );
    }
    return ill(`${url} did not answer within 5 s`, "start the model server, or correct ROOST_OPENAI_BASE_URL");
  }
  if (answer.status === 401 || answer.status === 403) {
    return ill(`${url} refuses the key (${answer.status})`, "correct ROOST_OPENAI_API_KEY");
  }
  const known = modelsOf(body);
  if (!answer.ok || known === null) {
    return ill(
      `${url} answered ${answer.status} without a list of models`,
      "correct ROOST_OPENAI_BASE_URL: it takes the /v1",
    );
  }
  // Ollama lists `name:latest` for what it answers to as `name`.
  if (known.includes(name) || known.includes(`${name}:latest`)) return well(`${name} is on ${baseUrl}`);
  const offered = known.slice(0, 10).join(", ");
  return ill(`${baseUrl} has no model ${name}`, `set ROOST_MODEL to one it has: openai: and ${offered || "(none)"}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function modelsOf(body: unknown): string[] | null {
  if (typeof body !== "object" || body === null || !("data" in body) || !Array.isArray(body.data)) return null;
  return body.data.map((model: { id?: unknown } | null) => String(model?.id));
}

/** A mail would go out now. */
export async function checkMail({ smtpUrl, mailFrom }: Pick<Config, "smtpUrl" | "mailFrom">): Promise<Finding> {
  const mail = createMail({ smtpUrl, from: mailFrom }, { append() {} });
  const { ok, detail } = await mail.check();
  return ok ? well(detail) : ill(detail, "correct ROOST_SMTP_URL, or the mail server");
}

const EARLIEST = Date.UTC(2026, 0);
const LATEST = Date.UTC(2100, 0);

/** A clock that lies makes tokens, invites and bills wrong. Only what no network is needed for is checked. */
export function checkClock(): Finding {
  const now = Date.now();
  const time = new Date(now).toISOString();
  if (now >= EARLIEST && now < LATEST) return well(time);
  return ill(`it says ${time}`, "set the host's clock, and keep it right with NTP");
}
