/** Names of models and of their files, which come from the hub, from folders and from commands. */

/** A model's name after `local:`, and of its folder. */
export const MODEL_NAME = /^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$/;
export const NAME_FORM = "a-z, 0-9, '.', '_' and '-', at most 64 characters, with a letter or digit at both ends";

/** The name that a repository or folder suggests: `onnx-community/Qwen2.5-0.5B-Instruct` is `qwen2.5-0.5b-instruct`. */
export const suggestedName = (path: string): string =>
  (path.replace(/\/+$/, "").split("/").at(-1) ?? "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replaceAll(/^[._-]+|[._-]+$/g, "")
    .slice(0, 64);

/** A path inside a model's folder that cannot leave it. */
export const isSafePath = (path: string): boolean =>
  /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}(?:\/[A-Za-z0-9_][A-Za-z0-9._-]{0,127}){0,2}$/.test(path);
