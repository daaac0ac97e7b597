/** A program for the tests: locked like the one that runs scripts, but what it runs is native code. */
import { enterSandbox, workInSandbox } from "../../src/sandbox/stages.ts";
import { prepareNativeWork } from "./native-work.ts";

const [role, start = "", sizes] = process.argv.slice(2);
if (role === "sandbox-enter") enterSandbox("native", start);
await workInSandbox(start, Number(sizes), prepareNativeWork);
