import { dlopen, FFIType, ptr } from "bun:ffi";
import { connect, type Socket } from "node:net";

/**
 * A loopback address (Linux) to which connecting never succeeds, like a host that drops packets: a socket that listens
 * with the shortest queue, accepts nothing, and has its queue filled.
 */
export async function openFullListener(): Promise<{ port: number; close(): void }> {
  const { i32, u32 } = FFIType;
  const { symbols } = dlopen("libc.so.6", {
    socket: { args: [i32, i32, i32], returns: i32 },
    bind: { args: [i32, FFIType.ptr, u32], returns: i32 },
    listen: { args: [i32, i32], returns: i32 },
    getsockname: { args: [i32, FFIType.ptr, FFIType.ptr], returns: i32 },
    close: { args: [i32], returns: i32 },
  });
  // struct sockaddr_in: family 2 (host order), port 0, 127.0.0.1.
  const address = new Uint8Array([2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  const length = new Uint32Array([address.length]);
  const listener = symbols.socket(2, 1, 0);
  symbols.bind(listener, ptr(address), address.length);
  symbols.listen(listener, 0);
  symbols.getsockname(listener, ptr(address), ptr(length));
  const port = ((address[2] ?? 0) << 8) | (address[3] ?? 0);
  const filler: Socket = connect({ host: "127.0.0.1", port });
  await new Promise<void>((resolve, reject) => filler.once("connect", resolve).once("error", reject));
  return {
    port,
    close() {
      filler.destroy();
      symbols.close(listener);
    },
  };
}
