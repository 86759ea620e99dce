const ids = new WeakMap<object, number>();
let nextId = 1;

/** A number of an object, for keys; 0 of none. */
export function idOf(object: object | undefined): number {
  if (object === undefined) return 0;
  let id = ids.get(object);
  if (id === undefined) ids.set(object, id = nextId++);
  return id;
}
