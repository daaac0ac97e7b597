import { gunzipSync, gzipSync } from "node:zlib";
import { readTar, tarEnd, tarHeader, tarPadding } from "../../src/bundles/tar.ts";

/** A file of an archive that a test writes. */
export type Given = readonly [name: string, content: string | Uint8Array];

export const manifest = (fields: object = {}): Given => [
  "manifest.json",
  JSON.stringify({ bundle: "roost-agent", version: 1, agent: { name: "Ada", slug: "ada" }, ...fields }),
];

const bytesOf = (content: string | Uint8Array) => (typeof content === "string" ? Buffer.from(content) : content);

export const tarOf = (files: readonly Given[]): Buffer =>
  Buffer.concat([
    ...files.flatMap(([name, content]) => {
      const bytes = bytesOf(content);
      return [tarHeader({ name, size: bytes.byteLength, modifiedAtMs: 0 }), bytes, tarPadding(bytes.byteLength)];
    }),
    tarEnd(),
  ]);

/** An archive of these files, as a bundle is compressed. */
export const bundleOf = (...files: Given[]): Buffer => gzipSync(tarOf(files));

/** A header of another kind than a file's, with its checksum. */
export function headerOf(kind: string, name: string, link = "", size = 0): Buffer {
  const block = tarHeader({ name, size, modifiedAtMs: 0 });
  block.write(kind, 156);
  block.write(link, 157);
  block.fill(" ", 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** The files of a bundle, by name. */
export async function filesIn(bundle: Uint8Array): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  async function* whole() {
    yield gunzipSync(bundle);
  }
  for await (const entry of readTar(whole(), 100_000)) files.set(entry.name, await entry.bytes(64 * 1024 * 1024));
  return files;
}
