import { join } from "node:path";

/**
 * The files of Swagger UI that show the reference, each gzipped. The build embeds them in the binary; from source they
 * come from node_modules.
 */
export type ViewerFile = keyof typeof IN_PACKAGE;

const IN_PACKAGE = {
  script: "swagger-ui-bundle.js",
  style: "swagger-ui.css",
  notice: "NOTICE",
  license: "LICENSE",
  bundledLicenses: "swagger-ui-bundle.js.LICENSE.txt",
} as const;

/** Reads a file, gzipped. */
export async function readViewerFile(name: ViewerFile): Promise<Uint8Array<ArrayBuffer>> {
  if (Bun.isStandaloneExecutable) {
    const { embeddedViewer } = await import("./embedded-viewer.ts");
    return await Bun.file(embeddedViewer[name]).bytes();
  }
  const folder = join(Bun.resolveSync("swagger-ui-dist/package.json", import.meta.dir), "..");
  return Bun.gzipSync(await Bun.file(join(folder, IN_PACKAGE[name])).bytes());
}
