import { isLocal, nameOf } from "../lib/model-name.ts";
import { PRICES_EXAMPLE } from "../limits/model-prices.ts";
import { MODEL_NAME } from "../models/store/names.ts";
import { byDefault, list, masked, orEmpty, orNull, path, type Setting, text, url, whole } from "./forms.ts";

/** Which models answer, and where they come from. */
export const models = {
  model: {
    ...text("ROOST_MODEL", "local:smollm2-135m-instruct", "the default model, for agents that name none", {
      expects: "local:<name> of a model on this host, or openai:<name>",
      form: /\S/,
    }),
    read: (value) => (/^openai:\S+$/.test(value) || isLocalName(value) ? value : undefined),
  } satisfies Setting<string>,
  /** Besides `model`. */
  models: byDefault(
    "that of ROOST_MODEL",
    orEmpty(
      list(
        text("ROOST_MODELS", "", "the server's models that agents may name; the host's own are always allowed", {
          expects: "a name",
          form: /^\S+$/,
        }),
        "names of models, or * for any",
      ),
    ),
  ),
  answerTokens: whole("ROOST_ANSWER_TOKENS", 4_096, "the longest answer of a model", { unit: "tokens" }),
  openAiBaseUrl: openAiBaseUrl(),
  openAiApiKey: masked(
    orNull(text("ROOST_OPENAI_API_KEY", "", "the key for that server", { expects: "a key", form: /^\S+$/ })),
  ),
  modelPrices: path(
    orNull(
      text(
        "ROOST_MODEL_PRICES",
        "",
        `a JSON file of what models cost, in USD for a million tokens, such as ${PRICES_EXAMPLE}; "cached" may be left out`,
        { expects: "the path of a file", form: /\S/ },
      ),
    ),
  ),
  tokensPerDay: tokens("ROOST_TOKENS_PER_DAY", "tokens that an account may take of the host's models in a day (UTC)"),
  tokensPerMonth: tokens("ROOST_TOKENS_PER_MONTH", "the same in a calendar month"),
  delegatedTokens: whole(
    "ROOST_DELEGATED_TOKENS",
    2_000_000,
    "tokens that other agents and copies may use, all together, for the answer to one message",
    { min: 0, max: 9e12 },
  ),
  /** Null for half of the memory. */
  modelMemory: modelMemory(),
  modelHub: modelHub(),
  modelHubToken: masked(
    orNull(
      text("ROOST_MODEL_HUB_TOKEN", "", "the token for models that the hub gives to its members only", {
        expects: "a token",
        form: /^[\x21-\x7e]+$/,
      }),
    ),
  ),
};

/** Null for no limit. */
function tokens(name: string, meaning: string): Setting<number | null> {
  const setting = whole(name, 0, meaning, { min: 0, max: 9e12 });
  const read = (value: string) => (value === "" ? null : setting.read(value));
  return { ...setting, fallback: "", fallbackShown: "none", read };
}

function modelMemory(): Setting<number | null> {
  const meaning = "the memory for pulled and imported models, all loaded ones together";
  const setting = whole("ROOST_MODEL_MEMORY", 0, meaning, { min: 64, max: 16_777_216, unit: "MiB" });
  const read = (value: string) => (value === "" ? null : setting.read(value));
  return { ...setting, fallback: "", fallbackShown: "half of the machine's", read };
}

/** Paths are appended to it. */
function modelHub(): Setting<string> {
  const expects = "an http or https URL without ? or #";
  const meaning = "the hub that models are pulled from";
  const setting = url("ROOST_MODEL_HUB", "https://huggingface.co", meaning, expects);
  return { ...setting, read: (value) => (/[?#]/.test(value) ? undefined : setting.read(value)?.replace(/\/+$/, "")) };
}

const isLocalName = (value: string): boolean => isLocal(value) && MODEL_NAME.test(nameOf(value));

/** Paths are appended to it. */
function openAiBaseUrl(): Setting<string | null> {
  const expects = "an http or https URL, with its /v1, without ? or #";
  const setting = orNull(url("ROOST_OPENAI_BASE_URL", "", "an OpenAI-compatible server", expects));
  return { ...setting, read: (value) => (/[?#]/.test(value) ? undefined : setting.read(value)) };
}
