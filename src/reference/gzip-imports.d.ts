/** A package's file that the build embeds gzipped; the import is the path to read it from. */
declare module "gzip:*" {
  const path: string;
  export default path;
}

declare module "*.css" {
  const text: string;
  export default text;
}
