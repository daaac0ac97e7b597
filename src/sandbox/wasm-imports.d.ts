/** QuickJS itself: a path to read it from, in the binary too. */
declare module "@jitl/quickjs-wasmfile-release-sync/wasm" {
  const path: string;
  export default path;
}
