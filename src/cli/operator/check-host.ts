import { existsSync } from "node:fs";
import { join } from "node:path";
import { bindAddress } from "../../app/start.ts";
import type { Config } from "../../config.ts";
import { AnswerTooLong, readBoundedText } from "../../lib/bounded-text.ts";
import { isLocal, LOCAL_PREFIX, nameOf } from "../../lib/model-name.ts";
import { lackOfMemory } from "../../limits/machine.ts";
import { OUTGOING } from "../../limits/outgoing.ts";
import { createMail } from "../../mail/mail.ts";
import { locateModelFiles } from "../../models/local/files.ts";
import { LOCAL_MODEL } from "../../models/local-models.ts";
import { findOllama } from "../../models/ollama.ts";
import { findModel, listModels, missingFiles, type StoredModel } from "../../models/store/store.ts";
import { probeLevel } from "../../sandbox/probe.ts";
import { serverOf } from "../../storage/lock.ts";
import { jailLevel } from "../../workspace/jail.ts";
import { roost } from "./advice.ts";
import { type Finding, fail, pass } from "./finding.ts";

const ENFORCED_BY = { openat2: "the kernel keeps", portable: "checks of each path keep" };

/** What locks scripts of agents in, found out by trying, and what keeps their files in the workspace. */
export async function checkSandbox(): Promise<Finding> {
  const { level, detail } = await probeLevel();
  const files = `${ENFORCED_BY[jailLevel()]} files in their workspace`;
  // Not a fault: a host without scripts is safe, and all else works.
  const off = "agents cannot run JavaScript here; install bubblewrap, or use Linux 5.13 or newer with Landlock";
  return pass(`${level}: ${detail}; ${level === "none" ? off : "scripts of agents are locked in"}; ${files}`);
}

const { deadlineMs, answerBytes } = OUTGOING.modelList;

/** The default model can answer: its files exist, or its server is up. */
export async function checkModel(
  config: Pick<Config, "dataDir" | "model" | "openAiBaseUrl" | "openAiApiKey">,
): Promise<Finding> {
  const { model, openAiBaseUrl } = config;
  if (model === LOCAL_MODEL) return checkEmbeddedModel(model);
  if (isLocal(model)) return checkAddedModel(model, config);
  if (openAiBaseUrl === null) return fail(`${model} needs a server`, "set ROOST_OPENAI_BASE_URL");
  return checkModelServer(nameOf(model), openAiBaseUrl, config.openAiApiKey);
}

function checkAddedModel(model: string, { dataDir }: Pick<Config, "dataDir">): Finding {
  const found = findModel(dataDir, nameOf(model));
  if (found !== null) return missingOf(found, dataDir) ?? pass(`${model} is in ${found.folder}`);
  const there = listModels(dataDir).map(({ manifest }) => LOCAL_PREFIX + manifest.name);
  return fail(
    `there is no model ${model}`,
    `set ROOST_MODEL to one of ${[LOCAL_MODEL, ...there].join(", ")}, or add it`,
  );
}

/** Every model that was added has its files. Their contents are checked when they are loaded. */
export function checkAddedModels({ dataDir }: Pick<Config, "dataDir">): Finding {
  const models = listModels(dataDir);
  for (const model of models) {
    const finding = missingOf(model, dataDir);
    if (finding !== null) return finding;
  }
  const names = models.map(({ manifest }) => LOCAL_PREFIX + manifest.name).join(", ");
  return pass(models.length === 0 ? "none was added" : `${names}: all files are there`);
}

/** Null if none is. */
function missingOf(model: StoredModel, dataDir: string): Finding | null {
  const missing = missingFiles(model);
  if (missing.length === 0) return null;
  const { name, source } = model.manifest;
  const words =
    "folder" in source ? `import ${source.folder} --name ${name}` : `pull ${source.repository} --name ${name}`;
  return fail(
    `local:${name} lacks ${missing.length} of its files, such as ${missing[0]}`,
    `get them again: ${roost(`models ${words}`, dataDir)}`,
  );
}

async function checkEmbeddedModel(model: string): Promise<Finding> {
  // If the files inside were damaged, the binary would not have started.
  if (Bun.isStandaloneExecutable) return small(`${model} is in the binary`);
  const { modelsFolder, library } = await locateModelFiles("");
  const needed = [library, join(modelsFolder, model.slice("local:".length), "onnx/model_q4.onnx")];
  const missing = needed.find((path) => !existsSync(path));
  if (missing !== undefined) return fail(`${missing} is missing`, "check out all of the sources, then run npm install");
  return small(`${model} is in the checkout`);
}

/** Says whether the small model has the memory it needs, what it cannot do, and how to get a stronger one. */
async function small(where: string): Promise<Finding> {
  const lack = lackOfMemory();
  if (lack !== null) {
    return fail(
      `${where}, but needs ${lack.needsMiB} MiB of memory, and there are ${lack.hasMiB} MiB`,
      "give the container or machine more memory, or set ROOST_MODEL=openai:NAME and ROOST_OPENAI_BASE_URL",
    );
  }
  const ollama = await findOllama();
  const stronger =
    ollama === null
      ? "for a stronger one, set ROOST_MODEL=openai:NAME and ROOST_OPENAI_BASE_URL"
      : `Ollama is running here: set ROOST_MODEL=openai:${ollama.models[0]} and ROOST_OPENAI_BASE_URL=${ollama.baseUrl}`;
  return pass(
    `${where}: it chats, tells the time, calculates, and keeps notes and files, but its facts and advice are often wrong; ${stronger}`,
  );
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
      return fail(
        `${url} answered with more than ${answerBytes} bytes`,
        "correct ROOST_OPENAI_BASE_URL: it ends with /v1",
      );
    }
    return fail(
      `${url} cannot be reached, or did not answer within 5 s`,
      "start the model server, or correct ROOST_OPENAI_BASE_URL",
    );
  }
  if (answer.status === 401 || answer.status === 403) {
    return fail(`${url} rejects the key (${answer.status})`, "correct ROOST_OPENAI_API_KEY");
  }
  const known = modelsOf(body);
  if (!answer.ok || known === null) {
    return fail(
      `${url} answered ${answer.status} without a list of models`,
      "correct ROOST_OPENAI_BASE_URL: it ends with /v1",
    );
  }
  // Ollama lists `name` as `name:latest`.
  if (known.includes(name) || known.includes(`${name}:latest`)) return pass(`${name} is on ${baseUrl}`);
  const offered = known.slice(0, 10).join(", ");
  return fail(
    `${baseUrl} has no model ${name}`,
    `set ROOST_MODEL to openai: and one that it has: ${offered || "(none)"}`,
  );
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

/** Mail can be sent. */
export async function checkMail({ smtpUrl, mailFrom }: Pick<Config, "smtpUrl" | "mailFrom">): Promise<Finding> {
  const mail = createMail({ smtpUrl, from: mailFrom }, { append() {} });
  const { ok, detail } = await mail.check();
  return ok ? pass(detail) : fail(detail, "correct ROOST_SMTP_URL, or the mail server");
}

/** The configured address can be listened on, or the folder's own server does so. Throws, saying how to fix it. */
export async function checkAddress(config: Config): Promise<Finding> {
  const server = serverOf(config.dataDir);
  if (server !== null) return pass(`the server is running${server.url === null ? "" : ` on ${server.url}`}`);
  const listener = bindAddress(config, { warn() {}, error() {} });
  await listener.stop();
  return pass(`the server can listen on ${config.port === 0 ? `a free port of ${config.host}` : listener.url}`);
}

const MIN_TIME = Date.UTC(2026, 0);
const MAX_TIME = Date.UTC(2100, 0);

/** A wrong clock makes tokens, invites and bills wrong. Only checks what needs no network. */
export function checkClock(): Finding {
  const now = Date.now();
  const time = new Date(now).toISOString();
  if (now >= MIN_TIME && now < MAX_TIME) return pass(time);
  return fail(`it says ${time}`, "set the host's clock, and keep it right with NTP");
}
