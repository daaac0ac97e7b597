import { expect, test } from "bun:test";
import type { Child } from "../../src/sandbox/child.ts";
import { createSandbox } from "../../src/sandbox/sandbox.ts";

/** A process that never gets ready: it dies with this fault, or, without one, once it is killed. */
function unready(fault: string | null): Child {
  const { promise: ready, resolve } = Promise.withResolvers<boolean>();
  if (fault !== null) resolve(false);
  const run = () => Promise.reject(new Error("not ready"));
  return {
    pid: 0,
    ready,
    fault: () => fault,
    probed: Promise.resolve(null),
    run,
    kill: () => resolve(false),
    gone: ready,
  };
}

function open(start: () => Child) {
  const warned: unknown[] = [];
  const sandbox = createSandbox({
    ...{ places: 1, standby: 0, start, accountOf: () => "acct_a" },
    log: { warn: (fields) => void warned.push(fields.reason) },
    probe: async () => ({ level: "landlock", detail: "" }),
  });
  const run = (signal: AbortSignal) =>
    sandbox
      .run({ kind: "script", source: "1", input: null }, { instanceId: "inst_a", runId: "run_a", signal })
      .catch((error: unknown) => String(error));
  return { sandbox, warned, run };
}

test("the operator learns why a process for a script does not get ready", async () => {
  const { warned, run } = open(() => unready("the kernel has no Landlock"));
  expect(await run(new AbortController().signal)).toContain("could not be started");
  expect(warned).toEqual(Array(3).fill("the kernel has no Landlock"));
});

test("a run that is cancelled while its process starts ends that process, and gives its place back", async () => {
  const started = Promise.withResolvers<void>();
  let starts = 0;
  const { sandbox, warned, run } = open(() => {
    starts++;
    started.resolve();
    return unready(null);
  });
  const cancel = new AbortController();
  const told = run(cancel.signal);
  await started.promise;
  cancel.abort("cancelled by its owner");
  expect(await told).toBe("cancelled by its owner");
  expect([starts, warned, sandbox.figures().running]).toEqual([1, [], 0]);
});
