export const LOCAL_MODEL = "local:smollm2-135m-instruct";

/** The models that can answer without a server. */
export const LOCAL_MODELS: readonly string[] = [LOCAL_MODEL];
