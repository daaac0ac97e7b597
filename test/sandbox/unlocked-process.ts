/** The same native code without any lock: a control, which shows that what the locks refuse would work without them. */
import { readFileSync, writeSync } from "node:fs";
import { prepareNativeWork } from "./native-work.ts";

const work = await prepareNativeWork();
await work(readFileSync(0, "utf8"), (frame) => void writeSync(1, `${JSON.stringify(frame)}\n`));
process.exit(0);
