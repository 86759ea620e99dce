import type { Draw } from "./draw.ts";

/** Bytes that mean something in headers: digits, quotes, brackets, the ends of the range. */
const BYTES = [0, 1, 10, 13, 27, 39, 40, 44, 45, 48, 57, 58, 91, 123, 127, 128, 155, 255];

/** Some faults of `bytes`: flips, cuts, insertions, parts of another file. */
export function mutateBytes(
  draw: Draw,
  bytes: Uint8Array,
  other: Uint8Array,
): Uint8Array<ArrayBuffer> {
  let result = new Uint8Array(bytes);
  for (let step = draw.pick([1, 1, 1, 2, 4]); step > 0; step--) {
    result = mutateOnce(draw, result, other);
  }
  return result;
}

function mutateOnce(
  draw: Draw,
  bytes: Uint8Array<ArrayBuffer>,
  other: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const length = bytes.length;
  // Headers lie at the beginning, directories of archives at the end.
  const where = draw.int(0, 3);
  const at = where === 0
    ? draw.int(0, Math.min(127, length))
    : where === 1
    ? Math.max(0, length - draw.int(0, 150))
    : draw.int(0, length);
  switch (draw.int(0, 7)) {
    case 0:
      if (at < length) bytes[at]! ^= 1 << draw.int(0, 7);
      return bytes;
    case 1:
      if (at < length) bytes[at] = draw.pick(BYTES);
      return bytes;
    case 2:
      return bytes.slice(0, at);
    case 3:
      return joined(bytes.subarray(0, at), bytes.subarray(Math.min(length, at + draw.int(1, 20))));
    case 4: {
      const added = Uint8Array.from(draw.times(draw.int(1, 20), () => draw.word()));
      return joined(bytes.subarray(0, at), added, bytes.subarray(at));
    }
    case 5: {
      const from = draw.int(0, other.length);
      const piece = other.subarray(from, from + draw.int(1, 200));
      return joined(
        bytes.subarray(0, at),
        piece,
        bytes.subarray(at + (draw.chance(0.5) ? piece.length : 0)),
      );
    }
    case 6: {
      // A part of its own again: doubled entries and headers.
      const from = draw.int(0, length);
      return joined(
        bytes.subarray(0, at),
        bytes.subarray(from, from + draw.int(1, 100)),
        bytes.subarray(at),
      );
    }
    default: {
      // A number of a header.
      const view = new DataView(bytes.buffer);
      if (at + 4 <= length) {
        view.setUint32(
          at,
          draw.pick([0, 1, 0x7fffffff, 0xffffffff, 0xfffffffe, draw.word()]),
          true,
        );
      }
      return bytes;
    }
  }
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

/** Values that stand in place of others. */
const VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1e308,
  1.5,
  "",
  "x",
  "NaN",
  [],
  {},
  [null],
  [[[[[]]]]],
  { __proto__: null, a: 1 },
  "\u001b[31mred",
  "a\nb",
  "\u202e",
  "y".repeat(2000),
  "__proto__",
  "mb1ic4ih8oc4kh3ph1",
  "mb99999999ic99999999ih99999999oc99999999kh3",
  9007199254740993,
  Array.from({ length: 100 }, (_, i) => i),
];

/** A copy of a record in which a value is replaced, removed or added somewhere. */
export function spoilValue(draw: Draw, value: unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null || (depth > 0 && draw.chance(0.3))) {
    return draw.pick(VALUES);
  }
  if (Array.isArray(value)) {
    if (value.length === 0) return draw.pick(VALUES);
    const copy = [...value];
    const at = draw.int(0, copy.length - 1);
    copy[at] = spoilValue(draw, copy[at], depth + 1);
    return copy;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return draw.pick(VALUES);
  const at = draw.int(0, entries.length - 1);
  const [key, old] = entries[at]!;
  switch (draw.int(0, 5)) {
    case 0:
      entries.splice(at, 1);
      break;
    case 1:
      entries.push([draw.pick(["more", "__proto__", "constructor", ""]), draw.pick(VALUES)]);
      break;
    case 2:
      entries[at] = [`${key}x`, old];
      break;
    default:
      entries[at] = [key, spoilValue(draw, old, depth + 1)];
  }
  return Object.fromEntries(entries);
}
