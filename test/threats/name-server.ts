import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type NameServer, startNameServer } from "../egress/name-server.ts";

/** Public, and nobody answers there at a port of this machine's choice. */
const PUBLIC = "8.8.8.8";
let started = 0;
/** Of loopback, and no other test's: files are tested at the same time. */
const ownAddress = (): string => `127.${64 + (started++ % 64)}.${(process.pid >> 8) & 255}.${process.pid & 255}`;

/** Names that are never answered for. */
export const SILENT: readonly string[] = Array.from({ length: 50 }, (_, number) => `silent-${number}.test`);

/** Names are asked for at port 53, and the settings of a resolver are a file of the whole machine. */
export const canServeNames = (): boolean =>
  process.platform === "linux" &&
  process.getuid?.() === 0 &&
  Bun.spawnSync(["unshare", "-m", "true"], { stdio: ["ignore", "ignore", "ignore"] }).exitCode === 0;

/** An attacker's name server, and what starts a program that asks it and no other. */
export async function startAttackersNames(): Promise<NameServer & { under: string[] }> {
  const hostname = ownAddress();
  const folder = mkdtempSync(join(tmpdir(), "roost-names-"));
  const settings = join(folder, "resolv.conf");
  writeFileSync(settings, `nameserver ${hostname}\noptions timeout:60 attempts:1\n`);
  const server = await startNameServer(
    {
      "loopback.test": () => ["127.0.0.1"],
      "half.test": () => [PUBLIC, "127.0.0.1"],
      "mapped.test": () => ["::ffff:127.0.0.1"],
      "metadata.test": () => ["169.254.169.254"],
      "named.test": () => ["127.0.0.1"],
      ...Object.fromEntries(SILENT.map((name) => [name, () => "silence"])),
      "rebinding.test": (query) => (query === 1 ? [PUBLIC] : ["127.0.0.1"]),
    },
    { hostname, port: 53 },
  );
  const mount = `mount --bind ${settings} /etc/resolv.conf && exec "$@"`;
  return {
    ...server,
    under: ["unshare", "-m", "sh", "-c", mount, "named"],
    close() {
      server.close();
      rmSync(folder, { recursive: true });
    },
  };
}
