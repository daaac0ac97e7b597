const sha256 = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/**
 * The hash that pins a skill: SHA-256, in hexadecimal, over what `sha256sum` prints for its files in the order of their
 * names (docs/contract/api.md, Skills).
 */
export function fingerprint(texts: ReadonlyMap<string, string>): string {
  const names = [...texts.keys()].sort();
  return sha256(names.map((name) => `${sha256(texts.get(name) ?? "")}  ${name}\n`).join(""));
}
