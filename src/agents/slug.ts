/** A workspace folder's name (docs/contract/api.md, Agents). */
export const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/;

const MAX_LENGTH = 63;

/** A slug made from a name, numbered if it is taken: `"Ada Lovelace"` → `ada-lovelace`, `ada-lovelace-2`. */
export function freeSlug(name: string, isTaken: (slug: string) => boolean): string {
  const plain = name
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, MAX_LENGTH);
  const base = plain === "" ? "agent" : plain;
  // An empty slug is always numbered: plain "agent" would look as if it came from the name.
  if (plain !== "" && !isTaken(plain)) return plain;
  for (let number = plain === "" ? 1 : 2; ; number++) {
    const suffix = `-${number}`;
    const slug = base.slice(0, MAX_LENGTH - suffix.length).replace(/-+$/, "") + suffix;
    if (!isTaken(slug)) return slug;
  }
}
