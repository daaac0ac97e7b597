import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChild } from "../../src/sandbox/child.ts";
import { probeLevel } from "../../src/sandbox/probe.ts";
import type { Attempts } from "../../src/sandbox/protocol.ts";
import { buildBinary, runBinary } from "../support/binary.ts";
import { canMount } from "../support/mounted.ts";

const folder = mkdtempSync(join(tmpdir(), "roost-probe-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ALL_REFUSED: Attempts = {
  landlockAbi: 7,
  outer: { read: -13, readParent: -13, write: -13, connect: -13, signal: -1, fork: null, execute: -13 },
  filtered: { read: -1, readParent: -1, write: -1, connect: -1, signal: -1, fork: -1, execute: -1 },
};

/** A program that says that it has tried this. */
function saying(attempts: unknown): { command: string[]; readable: string[] } {
  const path = join(folder, `${Bun.randomUUIDv7()}.sh`);
  writeFileSync(path, `#!/bin/sh\necho '${JSON.stringify({ type: "probed", attempts })}'\n`);
  chmodSync(path, 0o700);
  return { command: [path], readable: [] };
}

test("this machine locks scripts in: Landlock and the filter refuse every attempt", async () => {
  expect(await probeLevel()).toEqual({
    level: "landlock",
    detail: expect.stringMatching(/^Landlock \d+ and seccomp hold$/),
  });
});

test("the binary finds the same, and doctor says it", async () => {
  const { command, level } = { command: [await buildBinary()], level: "landlock" };
  expect(await probeLevel({ command, readable: [] })).toMatchObject({ level });
  const { output } = await runBinary(["doctor", "--json", "--data", join(folder, "data")]);
  const findings = JSON.parse(output) as { check: string; ok: boolean; detail: string }[];
  expect(findings.find(({ check }) => check === "sandbox")).toMatchObject({
    ok: true,
    detail: expect.stringMatching(/^landlock: Landlock \d+ and seccomp hold; scripts of agents are locked in; /),
  });
});

/** Needs root, or a kernel that lets anybody begin a namespace. */
const mayHide = Bun.spawnSync(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/etc"]).success;
test.skipIf(!mayHide)("a machine without /etc/passwd locks scripts in as well", async () => {
  const binary = await buildBinary();
  const hidden = 'mount -t tmpfs none /etc && exec "$0" doctor --json --data "$1"';
  const { stdout } = Bun.spawnSync(["unshare", "-rm", "sh", "-c", hidden, binary, join(folder, "data")], {
    env: { PATH: process.env.PATH, HOME: folder },
  });
  const findings = JSON.parse(stdout.toString()) as { check: string; detail: string }[];
  expect(findings.find(({ check }) => check === "sandbox")?.detail).toStartWith("landlock: ");
});

test.skipIf(!canMount)("a machine whose /tmp is read-only locks scripts in as well, as in a container", async () => {
  const binary = await buildBinary();
  const each = "for at in /tmp /dev/shm /var/tmp; do mount --bind $at $at && mount -o remount,ro,bind $at; done";
  const closed = `${each}; exec "$0" doctor --json --data /nowhere`;
  const { stdout } = Bun.spawnSync(["unshare", "-rm", "sh", "-c", closed, binary], {
    env: { PATH: process.env.PATH, HOME: folder },
  });
  const findings = JSON.parse(stdout.toString()) as { check: string; detail: string }[];
  expect(findings.find(({ check }) => check === "sandbox")?.detail).toStartWith("landlock: ");
});

test("where nothing at all can be written, nothing was let through", async () => {
  const outer = { ...ALL_REFUSED.outer, write: -30 };
  expect(await probeLevel(saying({ ...ALL_REFUSED, outer }))).toMatchObject({ level: "landlock" });
});

test("what a process says it could not do is believed only if nothing got through", async () => {
  expect(await probeLevel(saying(ALL_REFUSED))).toMatchObject({ level: "landlock" });
  const { outer, filtered } = ALL_REFUSED;
  const holes: [Partial<Attempts>, string][] = [
    [{ outer: { ...outer, read: 3 } }, "Landlock let something through"],
    [{ outer: { ...outer, readParent: 3 } }, "Landlock let something through"],
    [{ outer: { ...outer, write: 0 } }, "Landlock let something through"],
    [{ outer: { ...outer, connect: 0 } }, "Landlock let something through"],
    // Refused by the lack of a listener, not by a lock.
    [{ outer: { ...outer, connect: -111 } }, "Landlock let something through"],
    [{ outer: { ...outer, signal: 0 } }, "Landlock let a signal through"],
    [{ filtered: { ...filtered, fork: 77 } }, "the filter of system calls let fork through"],
    [{ filtered: { ...filtered, read: 3 } }, "the filter of system calls let read through"],
    [{ filtered: { ...filtered, connect: -111 } }, "the filter of system calls did not see connect"],
  ];
  for (const [attempts, why] of holes) {
    const { level, detail } = await probeLevel(saying({ ...ALL_REFUSED, ...attempts }));
    expect(level).toBe("none");
    expect(detail).toContain(why);
  }
});

test("a host's process that a script cannot even see is as safe from it: systemd's ProtectProc hides it", async () => {
  for (const readParent of [-2, -1]) {
    const outer = { ...ALL_REFUSED.outer, readParent };
    expect(await probeLevel(saying({ ...ALL_REFUSED, outer }))).toMatchObject({ level: "landlock" });
  }
});

test("an older Landlock counts without what it cannot do, which the filter then does alone", async () => {
  const outer = { ...ALL_REFUSED.outer, connect: null, signal: 0 };
  expect(await probeLevel(saying({ ...ALL_REFUSED, landlockAbi: 1, outer }))).toMatchObject({ level: "landlock" });
});

test("a process that does not start, dies or says nothing of use is no proof", async () => {
  for (const program of [
    { command: ["/nowhere/roost"], readable: [] },
    { command: ["/bin/false"], readable: [] },
    saying(null),
    saying({}),
    saying({ landlockAbi: 7, outer: {}, filtered: {} }),
  ]) {
    expect(await probeLevel(program)).toMatchObject({ level: "none" });
  }
});

test("a process that reaches the network is a hole, whatever it says", async () => {
  const path = join(folder, "connecting.ts");
  const said = JSON.stringify({ type: "probed", attempts: ALL_REFUSED });
  writeFileSync(
    path,
    `const { probe } = JSON.parse(process.argv.at(-1));
     const socket = await Bun.connect({ hostname: "127.0.0.1", port: probe, socket: { data() {}, close() {} } });
     console.log(${JSON.stringify(said)}); socket.end();`,
  );
  const program = { command: [process.execPath, path], readable: [] };
  const { level, detail } = await probeLevel(program);
  expect({ level, detail }).toMatchObject({ level: "none", detail: expect.stringContaining("reached the network") });
});

test("who may not give up capabilities goes on without any, and not with them", async () => {
  const run = async (how: string) => {
    const file = join(import.meta.dir, "refused-process.ts");
    const child = Bun.spawn([process.execPath, "--no-env-file", file, how], { stdout: "pipe", stderr: "inherit" });
    return (await new Response(child.stdout).text()).trim();
  };
  expect(await run("without any")).toBe("dropped");
  const hasSome = !/^CapPrm:\s+0+$/m.test(readFileSync("/proc/self/status", "latin1"));
  expect(await run("as it is")).toBe(hasSome ? "Error: capset failed with errno 1" : "dropped");
});

test("a process is gone with all that it has started, also if it ends before them", async () => {
  // As bubblewrap does where a filter refuses what it needs: its own child waits for it with the pipes open.
  const child = startChild(["/bin/sh", "-c", "sleep 600 & exit 1"], { ownSession: true });
  await child.gone;
  expect(await child.probed).toBeNull();
});
