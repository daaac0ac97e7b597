/** Begins the names of models that run on the host itself. */
export const LOCAL_PREFIX = "local:";
/** Begins the names of models that a server with an OpenAI-compatible API runs. */
export const OPENAI_PREFIX = "openai:";

export const isLocal = (model: string): boolean => model.startsWith(LOCAL_PREFIX);
export const isServed = (model: string): boolean => model.startsWith(OPENAI_PREFIX);

/** Without the prefix, as its server or its folder calls it. */
export const nameOf = (model: string): string => model.slice(model.indexOf(":") + 1);
