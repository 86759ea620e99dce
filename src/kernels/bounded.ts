/** Arrays of a module: by name, the text that is one more than the largest index of each of their dimensions. */
type Extents = ReadonlyMap<string, readonly string[]>;

const DECLARED = /\bvar(?:<(\w+)[^>]*>)? (\w+)(?:: | = )array</g;
/** Functions of WGSL that take where an array lies. */
const TAKES_ARRAY = /(?:arrayLength|subgroupMatrixLoad<.*>|subgroupMatrixStore<\w+>)\($/;

/**
 * A module's text whose every index into an array is held below the array's end, for devices that do not do so themselves:
 * `data[i]` becomes `data[min(u32(i), arrayLength(&data) - 1u)]`. What an index beyond the end reads is some element then, and
 * what it writes is written to the last one, as WebGPU has it; no array is empty. Indices that are numbers are a compiler's to
 * refuse, and those into vectors that are not arrays are left as they are.
 *
 * Matrices that subgroups load and store take no index: where they lie is a policy's alone (`tests/compilers/matrix_wgsl_test.ts`).
 *
 * @throws {TypeError} where an array is used in another way than as `name[index]` of a variable `var name: array<...>`: in
 * structures, behind pointers and aliases, whole, or by a name that something else has too.
 */
export function boundedIndices(wgsl: string): string {
  const text = withoutComments(wgsl);
  const extents = arrayExtents(text);
  const bounded = boundedText(text, extents);
  refuseOthers(text, extents);
  return bounded;
}

/** Comments may hold brackets and names; lines stay where they are. */
function withoutComments(wgsl: string): string {
  return wgsl.replaceAll(/\/\/.*$/gm, "")
    .replaceAll(/\/\*[^]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, " "));
}

function refused(what: string): TypeError {
  return new TypeError(
    `Cannot hold indices within arrays: "${what.trim()}", expected \`var name: array<type, size>\` and ` +
      "`name[index]` alone; a device that is opened as robust needs neither",
  );
}

function arrayExtents(wgsl: string): Extents {
  const extents = new Map<string, readonly string[]>();
  for (const { 0: match, 1: space, 2: name, index } of wgsl.matchAll(DECLARED)) {
    const begin = index + match.length;
    const sizes = dimensions(wgsl.slice(begin, closing(wgsl, begin, "<", ">")));
    if (sizes.slice(1).some((size) => size === "") || sizes[0] === "" && space !== "storage") {
      throw refused(match);
    }
    const known = sizes[0] === "" ? [`arrayLength(&${name})`, ...sizes.slice(1)] : sizes;
    if (known.some((size) => !/^(?:\d+u?|[A-Za-z_]\w*|arrayLength\(&\w+\))$/.test(size))) {
      throw refused(match + sizes.join());
    }
    const other = extents.get(name!);
    if (other !== undefined && other.join() !== known.join()) {
      throw new TypeError(`Cannot hold indices within arrays: two are named ${name}`);
    }
    extents.set(name!, known);
  }
  return extents;
}

/** Sizes of `array<array<f32, 4>, 8>`, given what is between its brackets, outermost first; none is "". */
function dimensions(inside: string): string[] {
  const nested = /^\s*array</.exec(inside);
  const end = nested === null ? 0 : closing(inside, nested[0].length, "<", ">") + 1;
  const rest = inside.slice(end);
  const comma = rest.lastIndexOf(",");
  const within = comma < 0 || rest.slice(comma).includes(">") ? "" : rest.slice(comma + 1).trim();
  return [within, ...(nested === null ? [] : dimensions(inside.slice(nested[0].length, end - 1)))];
}

/** Where the bracket that is open before `from` closes. */
function closing(text: string, from: number, open: string, close: string): number {
  for (let i = from, depth = 1; i < text.length; i++) {
    if (text[i] === open) depth++;
    else if (text[i] === close && --depth === 0) return i;
  }
  throw refused(text.slice(from - 1, from + 40));
}

/** Refuses what {@linkcode boundedText} leaves alone though it names an array. */
function refuseOthers(text: string, extents: Extents): void {
  const line = (index: number) =>
    text.slice(text.lastIndexOf("\n", index) + 1).split("\n")[0] ?? "";
  for (const { index } of text.matchAll(/\barray\b/g)) {
    const before = text.slice(0, index);
    const declared = /\bvar(?:<[^>]*>)? \w+(?:: | = )(?:array<)*$/.test(before);
    // What such a variable begins as.
    const value = /\bvar \w+: array<[^;]*> = (?:array<)*$/.test(before);
    if (!declared && !value || text[index + "array".length] !== "<") throw refused(line(index));
  }
  for (const { 0: hidden } of text.matchAll(/\balias\b|\bptr\s*</g)) throw refused(hidden);
  for (const [name, sizes] of extents) {
    for (const { index } of text.matchAll(new RegExp(`(?<![.\\w])${name}\\b`, "g"))) {
      const before = text.slice(0, index);
      const after = text.slice(index + name.length);
      const declares = /\bvar(?:<[^>]*>)? $/.test(before) && /^(?:: | = )array</.test(after);
      const taken = before.endsWith("&") &&
        TAKES_ARRAY.test(before.slice(0, -1).split("\n").at(-1)!);
      if (declares || taken) continue;
      // Every dimension, so that no array is taken whole.
      let rest = after;
      for (const _ of sizes) {
        if (rest[0] !== "[") throw refused(line(index));
        rest = rest.slice(closing(rest, 1, "[", "]") + 1);
      }
      if (/&\s*$/.test(before) && !/\batomic\w+\(&\s*$/.test(before)) throw refused(line(index));
    }
  }
}

function boundedText(text: string, extents: Extents): string {
  let bounded = "", from = 0;
  for (const { 0: match, 1: name, index } of text.matchAll(/(?<![.\w])([A-Za-z_]\w*)\[/g)) {
    const sizes = extents.get(name!);
    // Within an index that is already done.
    if (sizes === undefined || index < from) continue;
    bounded += text.slice(from, index) + name;
    from = index + match.length - 1;
    for (const size of sizes) {
      if (text[from] !== "[") break;
      const end = closing(text, from + 1, "[", "]");
      bounded += `[${boundedIndex(text.slice(from + 1, end), size, extents)}]`;
      from = end + 1;
    }
  }
  return bounded + text.slice(from);
}

function boundedIndex(index: string, size: string, extents: Extents): string {
  if (/^\s*\d+[ui]?\s*$/.test(index)) return index;
  const last = /^\d+u?$/.test(size)
    ? `${parseInt(size) - 1}u`
    : size.startsWith("array")
    ? `${size} - 1u`
    : `u32(${size}) - 1u`;
  return `min(u32(${boundedText(index, extents)}), ${last})`;
}
