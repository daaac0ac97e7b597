/** Vectors as they are kept: one byte for each of their numbers, and the number that they are multiples of. */
const DIMENSIONS = 384;
const BYTES = DIMENSIONS + 4;
/** What it takes to find one by its id, about. */
const ID_BYTES = 48;

export function packVector(vector: Float32Array): Uint8Array {
  const most = vector.reduce((max, value) => Math.max(max, Math.abs(value)), 1e-9);
  const packed = new Uint8Array(BYTES);
  new DataView(packed.buffer).setFloat32(0, most / 127, true);
  const values = new Int8Array(packed.buffer, 4);
  for (let at = 0; at < DIMENSIONS; at++) values[at] = Math.round(((vector[at] ?? 0) / most) * 127);
  return packed;
}

/** The vectors of one agent's memory, in memory: all are compared with a query, which takes a millisecond. */
export interface Vectors {
  set(id: number, packed: Uint8Array): void;
  drop(id: number): void;
  /** The ids nearest to the vector, best first, those at least so near. */
  nearest(vector: Float32Array, limit: number, least: number): number[];
  /** The cosine; null if there is none of this id. */
  near(id: number, vector: Float32Array): number | null;
  heldBytes(): number;
}

export function createVectors(): Vectors {
  const places = new Map<number, number>();
  const ids: number[] = [];
  let values = new Int8Array(64 * DIMENSIONS);
  let units = new Float32Array(64);

  function move(from: number, to: number): void {
    values.copyWithin(to * DIMENSIONS, from * DIMENSIONS, (from + 1) * DIMENSIONS);
    units[to] = units[from] ?? 0;
    const id = ids[from] ?? 0;
    ids[to] = id;
    places.set(id, to);
  }

  function nearAt(place: number, vector: Float32Array): number {
    let sum = 0;
    const start = place * DIMENSIONS;
    for (let at = 0; at < DIMENSIONS; at++) sum += (values[start + at] as number) * (vector[at] as number);
    return sum * (units[place] as number);
  }

  return {
    set(id, packed) {
      const place = places.get(id) ?? ids.length;
      if (place === units.length) {
        const [more, moreUnits] = [new Int8Array(values.length * 2), new Float32Array(units.length * 2)];
        more.set(values);
        moreUnits.set(units);
        [values, units] = [more, moreUnits];
      }
      const { buffer, byteOffset } = packed;
      units[place] = new DataView(buffer, byteOffset, 4).getFloat32(0, true);
      values.set(new Int8Array(buffer, byteOffset + 4, DIMENSIONS), place * DIMENSIONS);
      ids[place] = id;
      places.set(id, place);
    },
    drop(id) {
      const place = places.get(id);
      if (place === undefined) return;
      places.delete(id);
      const last = ids.length - 1;
      if (place !== last) move(last, place);
      ids.length = last;
    },
    nearest(vector, limit, least) {
      const found: { id: number; near: number }[] = [];
      let worst = least;
      for (let place = 0; place < ids.length; place++) {
        const near = nearAt(place, vector);
        if (near < worst) continue;
        found.push({ id: ids[place] as number, near });
        if (found.length >= 4 * limit) {
          found.sort((a, b) => b.near - a.near).length = limit;
          worst = found.at(-1)?.near ?? least;
        }
      }
      return found
        .sort((a, b) => b.near - a.near)
        .slice(0, limit)
        .map(({ id }) => id);
    },
    near(id, vector) {
      const place = places.get(id);
      return place === undefined ? null : nearAt(place, vector);
    },
    heldBytes: () => values.byteLength + units.byteLength + ids.length * ID_BYTES,
  };
}
