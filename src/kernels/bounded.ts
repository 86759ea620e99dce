/** Arrays of a module: by name, the text that is one more than the largest index of each of their dimensions. */
type Extents = ReadonlyMap<string, readonly string[]>;

/** Arrays that {@linkcode DECLARED} does not show. */
const HIDDEN =
  /\balias\s+\w+|\bptr\s*<|\bstruct\s+\w+\s*\{[^}]*\barray\b|\b(?:let|const)\s+\w+\s*(?::|=)\s*array\b/;
const DECLARED = /\bvar(?:<(\w+)[^>]*>)?\s+(\w+)\s*(?::\s*|=\s*)(array<)/g;

/**
 * A module's text whose every index into an array is held below the array's end, for devices that do not do so themselves:
 * `data[i]` becomes `data[min(i, arrayLength(&data) - 1u)]`. What an index beyond the end reads is some element then, and what
 * it writes is written to the last one, as WebGPU has it; no array is empty. Indices that are numbers are a compiler's to refuse.
 *
 * Matrices that subgroups load and store take no index: where they lie is a policy's alone (`tests/matrix_wgsl_test.ts`).
 *
 * @throws {TypeError} where arrays are not variables of their own: in structures, behind pointers, by other names.
 */
export function boundedIndices(wgsl: string): string {
  const hidden = HIDDEN.exec(wgsl)?.[0];
  if (hidden !== undefined) {
    throw new TypeError(
      `Cannot hold indices within arrays that are no variables of their own: "${hidden}", expected \`var name: array<...>\``,
    );
  }
  const extents = arrayExtents(wgsl);
  return extents.size === 0 ? wgsl : boundedText(wgsl, extents);
}

function arrayExtents(wgsl: string): Extents {
  const extents = new Map<string, readonly string[]>();
  for (const { 1: space, 2: name, 3: opening, index } of wgsl.matchAll(DECLARED)) {
    const begin = index + wgsl.slice(index).indexOf(opening!) + "array<".length;
    const sizes = dimensions(wgsl.slice(begin, closing(wgsl, begin, "<", ">")));
    const known = sizes[0] === "" ? [`arrayLength(&${name})`, ...sizes.slice(1)] : sizes;
    if (space === undefined && sizes[0] === "") continue;
    const other = extents.get(name!);
    if (other !== undefined && other.join() !== known.join()) {
      throw new Error(`Cannot bound indices: two arrays are named ${name}`);
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
  throw new Error(`Cannot bound indices: ${open} is never closed`);
}

function boundedText(text: string, extents: Extents): string {
  let bounded = "", from = 0;
  for (const { 0: match, 1: name, index } of text.matchAll(/\b([A-Za-z_]\w*)\[/g)) {
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
  const last = /^\d+u?$/.test(size) ? `${parseInt(size) - 1}u` : `${size} - 1u`;
  return `min(${boundedText(index, extents)}, ${last})`;
}
