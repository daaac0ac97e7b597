import { isIPv6 } from "node:net";

/** The answers of a name server that an attacker runs: by name, for each query in turn, or silence. */
export type Zone = Record<string, (query: number) => string[] | "silence">;

export interface NameServer {
  port: number;
  /** How often a name's IPv4 addresses were asked for. */
  asked(name: string): number;
  close(): void;
}

/** A name server on loopback: real packets, of the kinds A and AAAA. */
export async function startNameServer(zone: Zone, at = { hostname: "127.0.0.1", port: 0 }): Promise<NameServer> {
  const queries: string[] = [];
  const asked = (name: string) => queries.filter((one) => one === name).length;
  const server = await Bun.udpSocket({
    ...at,
    socket: {
      data(socket, packet, port, address) {
        const { name, end } = nameOf(packet);
        const isV6 = packet.readUInt16BE(end) === 28;
        if (!isV6) queries.push(name);
        const found = zone[name]?.(asked(name));
        if (found === "silence") return;
        const records = (found ?? []).filter((one) => isIPv6(one) === isV6).map((one) => recordOf(one, isV6));
        const head = Buffer.alloc(12);
        packet.copy(head, 0, 0, 2);
        head.writeUInt16BE(found === undefined ? 0x8183 : 0x8180, 2);
        head.writeUInt16BE(1, 4);
        head.writeUInt16BE(records.length, 6);
        socket.send(Buffer.concat([head, packet.subarray(12, end + 4), ...records]), port, address);
      },
    },
  });
  return { port: server.port, asked, close: () => server.close() };
}

/** The name that is asked for, and where it ends. */
function nameOf(packet: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (; packet[at]; at += (packet[at] ?? 0) + 1) {
    labels.push(packet.toString("latin1", at + 1, at + 1 + (packet[at] ?? 0)));
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 };
}

function recordOf(address: string, isV6: boolean): Buffer {
  const bytes = isV6
    ? Buffer.from("00000000000000000000ffff7f000001", "hex")
    : Buffer.from(address.split(".").map(Number));
  const head = Buffer.from([0xc0, 12, 0, isV6 ? 28 : 1, 0, 1, 0, 0, 0, 0, 0, bytes.length]);
  return Buffer.concat([head, bytes]);
}
