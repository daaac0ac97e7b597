import { type ArchivedFile, writeArchive } from "./archive.ts";
import type { Destination } from "./destination.ts";
import { type Contents, takeSnapshot } from "./snapshot.ts";

/** Bytes read so far, of about `total`. */
export type OnProgress = (done: number, total: number) => void;

export interface CreateOptions {
  dataDir: string;
  destination: Destination;
  name: string;
  /** Also `KEY_FILES`. */
  withKeys: boolean;
  passphrase: string | null;
  onProgress?: OnProgress;
  /**
   * Called once the database is copied, which nothing interrupts; what it returns ends the backup. Without it, nothing
   * does.
   */
  untilAborted?(): AbortSignal;
}

export interface CreatedBackup extends Contents {
  /** Of the backup file, in bytes. */
  size: number;
}

/** Makes a backup of a data folder, with or without a running server. Throws if that fails; then there is no file. */
export async function createBackup(options: CreateOptions): Promise<CreatedBackup> {
  const { dataDir, destination, name, withKeys, passphrase, onProgress = () => {}, untilAborted } = options;
  // Copying a large database takes a while, and says nothing itself.
  onProgress(0, 1);
  const snapshot = await takeSnapshot(dataDir, { withKeys });
  try {
    const files = watched(snapshot.files(), (done) => onProgress(done, Math.max(done, snapshot.expectedBytes)));
    const signal = untilAborted?.() ?? new AbortController().signal;
    const archive = await writeArchive(files, snapshot.contents, passphrase);
    const size = await destination.write(name, archive, signal);
    return { ...snapshot.contents(), size };
  } finally {
    await snapshot.close();
  }
}

/** The same files; calls `onBytes` with the sum of what was read. */
async function* watched(
  files: AsyncIterable<ArchivedFile>,
  onBytes: (done: number) => void,
): AsyncGenerator<ArchivedFile> {
  let done = 0;
  for await (const file of files) {
    const { content } = file;
    async function* counted() {
      for await (const chunk of content) {
        done += chunk.length;
        onBytes(done);
        yield chunk;
      }
    }
    yield { ...file, content: counted() };
  }
}
