#!/usr/bin/env bun
// Which role is this process? Nothing else: each role loads only what it needs.
import { bypassProxyHere } from "./lib/no-proxy.ts";

bypassProxyHere(process.env);

// The build makes the JIT wait (scripts/compile.ts), which suits commands and a start: the others end that here.
if (process.argv[2] === "model-process") {
  const { runModelProcess } = await import("./models/local/process.ts");
  Bun.unsafe.setJITPolicy(1);
  await runModelProcess();
} else if (process.argv[2] === "sandbox-enter") {
  const { enterSandbox } = await import("./sandbox/stages.ts");
  enterSandbox("sandbox-script", process.argv[3] ?? "");
} else if (process.argv[2] === "sandbox-script") {
  const { runScriptProcess } = await import("./sandbox/process.ts");
  Bun.unsafe.setJITPolicy(1);
  await runScriptProcess(process.argv[3] ?? "", Number(process.argv[4]));
} else if (process.argv[2] === "database-check") {
  const { runCheckProcess } = await import("./storage/check-process.ts");
  runCheckProcess(process.argv[3] ?? "");
} else {
  const { runCommandLine } = await import("./cli/cli.ts");
  await runCommandLine(process.argv.slice(2));
}
