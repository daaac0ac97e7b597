/** Provided by the build (scripts/build-plugin.ts). */
declare module "console:files" {
  const files: import("./bundle.ts").ConsoleFile[];
  export default files;
}
