/** A thing that is made when it is first asked for, and then kept. */
export function lazily<T>(make: () => T): () => T {
  let made: { thing: T } | undefined;
  return () => {
    made ??= { thing: make() };
    return made.thing;
  };
}
