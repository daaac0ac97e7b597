/** Files that the build embeds, by their path below `models/` or their name in onnxruntime-node: a path to read from. */
declare module "model:*" {
  const path: string;
  export default path;
}
declare module "native:*" {
  const path: string;
  export default path;
}

declare module "sha256:*" {
  /** In hexadecimal. */
  const sum: string;
  export default sum;
}
