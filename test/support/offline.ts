/** Runs a command in a network of its own that has only a loopback (Linux). */
export const OFFLINE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "offline"];

/** Whether this machine lets a test cut off the network. */
export const canCutNetwork = Bun.which("unshare") !== null && Bun.spawnSync([...OFFLINE, "true"]).exitCode === 0;
