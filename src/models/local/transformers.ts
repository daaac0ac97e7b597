/**
 * The only file that imports transformers.js. When run from source, that would load `sharp` (images, with a native
 * library); nothing here uses it, so a stub replaces it, and a system without sharp's binary works too. For the binary,
 * the build does the same.
 */
export async function loadTransformers() {
  if (!import.meta.path.includes("$bunfs")) {
    Bun.plugin({
      name: "no-images",
      setup(build) {
        build.module("sharp", () => ({ exports: { default: noImages }, loader: "object" }));
      },
    });
  }
  const transformers = await import("@xenova/transformers");
  transformers.env.allowRemoteModels = false;
  return transformers;
}

function noImages(): never {
  throw new Error("images are not part of this program");
}
