#!/usr/bin/env bun
// Which role is this process? Nothing else: each role loads only what it needs.
if (process.argv[2] === "model-process") {
  const { runModelProcess } = await import("./models/local/process.ts");
  await runModelProcess();
} else if (process.argv[2] === "sandbox-enter") {
  const { enterSandbox } = await import("./sandbox/stages.ts");
  enterSandbox("sandbox-script", process.argv[3] ?? "");
} else if (process.argv[2] === "sandbox-script") {
  const { runScriptProcess } = await import("./sandbox/process.ts");
  await runScriptProcess(process.argv[3] ?? "", Number(process.argv[4]));
} else if (process.argv[2] === "database-check") {
  const { runCheckProcess } = await import("./storage/check-process.ts");
  runCheckProcess(process.argv[3] ?? "");
} else {
  const { runCommandLine } = await import("./cli/cli.ts");
  await runCommandLine(process.argv.slice(2));
}
