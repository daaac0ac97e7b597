#!/usr/bin/env bun
// Which role is this process? Nothing else: each role loads only what it needs.
if (process.argv[2] === "model-process") {
  const { runModelProcess } = await import("./models/local/process.ts");
  await runModelProcess();
} else {
  const { runCommandLine } = await import("./cli/cli.ts");
  await runCommandLine(process.argv.slice(2));
}
