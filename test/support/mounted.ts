/** Mounts a file system of `options` at `where` before the command that follows, seen by it alone. */
export const mounted = (options: string, where: string): string[] => [
  "unshare",
  "--mount",
  "--map-root-user",
  "sh",
  "-c",
  `mount -t tmpfs -o ${options} none "$0" && exec "$@"`,
  where,
];

export const canMount: boolean =
  Bun.which("unshare") !== null && Bun.spawnSync([...mounted("size=1m", "/mnt"), "true"]).exitCode === 0;
