/** Begins the names of models that run on the host itself. */
export const LOCAL_PREFIX = "local:";

/** The embedded model. */
export const LOCAL_MODEL = "local:smollm2-135m-instruct";
/** The embedded model for vectors. */
export const LOCAL_EMBEDDER = "local:all-minilm-l6-v2";
