/** Runs a command in a network namespace that has only a loopback (Linux). */
export const OFFLINE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "offline"];

/** Whether this machine allows a test to do that. */
export const canCutNetwork = Bun.which("unshare") !== null && Bun.spawnSync([...OFFLINE, "true"]).exitCode === 0;
