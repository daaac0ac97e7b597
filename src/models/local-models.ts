import { LOCAL_PREFIX } from "../lib/model-name.ts";

/** The embedded model. */
export const LOCAL_MODEL = `${LOCAL_PREFIX}smollm2-135m-instruct`;
/** The embedded model for vectors. */
export const LOCAL_EMBEDDER = `${LOCAL_PREFIX}all-minilm-l6-v2`;
