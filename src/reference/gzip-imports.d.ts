/** A file of a package that the build embeds gzipped: a path to read from. */
declare module "gzip:*" {
  const path: string;
  export default path;
}

declare module "*.css" {
  const text: string;
  export default text;
}
