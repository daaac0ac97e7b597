import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";

/** Where a running server keeps what it packs and unpacks, in the data folder. Nothing in it outlives its request. */
const SCRATCH = "bundles";

/** Removes what a process has left there that was killed: what is there now, and nothing that is put there later. */
export async function clearScratch(dataDir: string): Promise<void> {
  const folder = join(dataDir, SCRATCH);
  const left = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
  for (const name of left) await fs.promises.rm(join(folder, name), { recursive: true, force: true });
}

/** The path of a new file or folder there. */
export async function scratchPath(dataDir: string): Promise<string> {
  const folder = join(dataDir, SCRATCH);
  await fs.promises.mkdir(folder, { recursive: true, mode: 0o700 });
  return join(folder, randomUUID());
}

/** A part of a scratch file. */
export interface Range {
  at: number;
  size: number;
}

/** A file without a name, that goes when it is closed, or this process dies. */
export interface ScratchFile {
  append(bytes: Uint8Array): Promise<Range>;
  size(): number;
  read(range: Range): Promise<Buffer>;
  chunks(range: Range): AsyncGenerator<Uint8Array>;
  close(): Promise<void>;
}

const CHUNK_BYTES = 256 * 1024;

export async function openScratchFile(dataDir: string): Promise<ScratchFile> {
  const path = await scratchPath(dataDir);
  const file = await fs.promises.open(path, "wx+", 0o600);
  await fs.promises.unlink(path);
  let size = 0;

  async function read({ at, size: length }: Range): Promise<Buffer> {
    const bytes = Buffer.alloc(length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await file.read(bytes, done, length - done, at + done);
      if (bytesRead === 0) throw new Error("a scratch file became shorter");
      done += bytesRead;
    }
    return bytes;
  }

  return {
    async append(bytes) {
      const range = { at: size, size: bytes.byteLength };
      for (let done = 0; done < bytes.byteLength; ) {
        done += (await file.write(bytes, done, bytes.byteLength - done, range.at + done)).bytesWritten;
      }
      size += bytes.byteLength;
      return range;
    },
    size: () => size,
    read,
    async *chunks({ at, size: length }) {
      for (let done = 0; done < length; done += CHUNK_BYTES) {
        yield await read({ at: at + done, size: Math.min(CHUNK_BYTES, length - done) });
      }
    },
    close: () => file.close(),
  };
}
