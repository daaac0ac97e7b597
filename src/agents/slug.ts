/** A workspace folder's name (api.md section 4). */
export const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/;

const LONGEST = 63;

/** A slug made from a name, with a number behind it where it is taken: `"Ada Lovelace"` → `ada-lovelace`, `ada-lovelace-2`. */
export function freeSlug(name: string, isTaken: (slug: string) => boolean): string {
  const plain = name
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, LONGEST);
  const base = plain === "" ? "agent" : plain;
  // An empty slug always takes a number, since "agent" would say that it came from the name.
  if (plain !== "" && !isTaken(plain)) return plain;
  for (let number = plain === "" ? 1 : 2; ; number++) {
    const suffix = `-${number}`;
    const slug = base.slice(0, LONGEST - suffix.length).replace(/-+$/, "") + suffix;
    if (!isTaken(slug)) return slug;
  }
}
