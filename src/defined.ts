/** An object without the fields that may be undefined, which it may lack in their place. */
type Defined<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };

/** The fields that are not undefined. */
export function defined<T extends object>(fields: T): Defined<T> {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as Defined<T>;
}
