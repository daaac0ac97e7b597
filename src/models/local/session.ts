/** A model, opened by ONNX Runtime. */
import { ptr } from "bun:ffi";
import { cString } from "../../lib/c-string.ts";
import { releaseFreed } from "./memory.ts";
import { type Handle, type OrtApi, pointer } from "./ort-api.ts";

const LOG_ERRORS = 3;
const ALL_OPTIMISATIONS = 99;

/** Takes half a second, in which the thread does nothing else. Throws ONNX Runtime's message if the file does not fit. */
export function openSession({ c, check, make }: OrtApi, modelFile: string, threads: number): Handle {
  const name = cString("roost");
  const env = make((out) => c.createEnv(LOG_ERRORS, ptr(name), out));
  const settings = make((out) => c.createSessionOptions(out));
  check(c.setIntraOpNumThreads(pointer(settings), threads));
  check(c.setInterOpNumThreads(pointer(settings), 1));
  check(c.setGraphOptimizationLevel(pointer(settings), ALL_OPTIMISATIONS));
  const file = cString(modelFile);
  const session = make((out) => c.createSession(pointer(env), ptr(file), pointer(settings), out));
  releaseFreed(); // the weights as they were in the file: up to 30 MiB
  return session;
}
