/** What the executable does in the role `model-process`, for tests of the engine alone. */
import { runModelProcess } from "../../src/models/local/process.ts";

await runModelProcess();
