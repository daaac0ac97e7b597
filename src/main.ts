#!/usr/bin/env bun
// Which role is this process? Nothing else: each role loads only what it needs.
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
  if (process.argv[2] === "serve") beginWithout("BUN_JSC_useFTLJIT");
  const { runCommandLine } = await import("./cli/cli.ts");
  await runCommandLine(process.argv.slice(2));
}

/**
 * Begins this process anew without a part of the JIT, which reads its settings only then. Compiling a server's code for the
 * last tier is a tenth to a fifth of what each of the first thirty thousand messages costs, and makes none cheaper.
 */
function beginWithout(setting: string): void {
  if (Bun.isStandaloneExecutable && process.env[setting] === undefined) {
    try {
      process.execve?.(process.execPath, [process.argv0, ...process.argv.slice(2)], { ...process.env, [setting]: "0" });
    } catch {} // it serves as well with it
  }
  // The processes that it starts are to have it: the model's code is small, and runs for long.
  delete process.env[setting];
}
