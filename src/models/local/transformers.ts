/**
 * The one place that imports transformers.js. Running from source it would open `sharp` (images, a native library of its
 * own) while it loads; nothing here uses it, so a stub stands in and a system without sharp's binary works too. In the
 * binary the build does the same.
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
