/** Makes a thing at the first call, and returns it again at later ones. */
export function lazily<T>(make: () => T): () => T {
  let made: { thing: T } | undefined;
  return () => {
    made ??= { thing: make() };
    return made.thing;
  };
}
