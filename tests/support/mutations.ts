/** Damaged copies of bytes: changed, cut, doubled, by a seed. */
export function mutated(bytes: Uint8Array, seed: number): Uint8Array<ArrayBuffer> {
  let state = seed * 2654435761 >>> 0 || 1;
  const random = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
  const copy = new Uint8Array(bytes);
  switch (seed % 4) {
    case 0:
      return copy.slice(0, random(copy.length));
    case 1: {
      const at = random(copy.length);
      return new Uint8Array([...copy.slice(0, at), ...copy.slice(Math.max(0, at - 9))]);
    }
    default:
      for (let times = 1 + random(4); times > 0; times--) copy[random(copy.length)] = random(256);
      return copy;
  }
}
