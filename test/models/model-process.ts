/** The executable's role `model-process`, for tests of the engine alone. */
import { runModelProcess } from "../../src/models/local/process.ts";

await runModelProcess();
