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

/** Makes the folder read-only for the command that follows, and for it alone. */
export const readOnly = (folder: string): string[] => [
  "unshare",
  "--mount",
  "--map-root-user",
  "sh",
  "-c",
  'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"',
  folder,
];

export const canMount: boolean =
  Bun.which("unshare") !== null && Bun.spawnSync([...mounted("size=1m", "/mnt"), "true"]).exitCode === 0;
