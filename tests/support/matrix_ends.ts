/** Where the matrices lie that a kernel's subgroups load and store, computed from its text. */
import assert from "#assert";
import type { Kernel } from "../../src/kernels/kernel.ts";
import { MATRIX_FEATURES } from "../../src/kernels/matrix_units.ts";

/** Bytes of what arrays of workgroup memory hold, and of what matrices do. */
const BYTES: Readonly<Record<string, number>> = {
  f16: 2,
  u32: 4,
  i8: 1,
  f32: 4,
  i32: 4,
  vec4f: 16,
  "vec4<i32>": 16,
  "vec4<f16>": 8,
  "vec4<u32>": 16,
  "vec2<u32>": 8,
};

/** What an index may hold beside numbers and places that were declared before: it differs between subgroups and steps. */
const GIVEN = ["subgroup", "half", "fill"];

/** The index as text of JavaScript, of whole numbers as WGSL computes with them. */
function indexText(text: string, known: ReadonlySet<string>): string {
  const words = text.replaceAll(/\b(\d+)u\b/g, "$1n").replaceAll(/\b[A-Za-z_]\w*/g, (name) => {
    assert.ok(name === "min" || known.has(name), `${name} of ${text}`);
    return name;
  });
  assert.match(words, /^[\w\s()+*/%,-]+$/);
  return words;
}

/** A matrix that a subgroup loads or stores: the array's elements, and the one behind the last that it touches. */
interface MatrixEnd {
  readonly name: string;
  readonly size: number;
  readonly end: number;
}

/** Whether subgroups of a kernel multiply on matrix units. */
export function usesUnits({ features }: Pick<Kernel, "features">): boolean {
  return features.includes(MATRIX_FEATURES[1]!);
}

/**
 * Of each matrix that a kernel loads or stores where it ends, of every subgroup and of both halves of memory that holds two tiles.
 * Everything that such a place is made of is a number of the text or one of {@linkcode GIVEN}; what is not fails.
 */
function matrixEnds(
  { name: kernel, wgsl, workgroupSize: [threads] }: Kernel,
  lanes: number,
): MatrixEnd[] {
  const arrays = new Map(
    [...wgsl.matchAll(/var<workgroup> (\w+): array<(.+), (\d+)>;/g)].map(([, name, type, size]) =>
      [name!, { bytes: BYTES[type!]!, size: Number(size) }] as const
    ),
  );
  const load =
    /subgroupMatrixLoad<subgroup_matrix_(left|right)<(\w+), (\d+), (\d+)>, (\w+)>\(&(\w+), (.+), (\d+)u\);$/gm;
  const store = /subgroupMatrixStore<(\w+)>\(&(\w+), (.+), (sum\w+), (\d+)u\);$/gm;
  const result = /subgroup_matrix_result<(\w+), (\d+), (\d+)>/.exec(wgsl)!;
  const accesses = [
    ...[...wgsl.matchAll(load)].map(([, , component, columns, rows, order, name, at, stride]) => ({
      component: component!,
      lines: Number(order === "row_major" ? rows : columns),
      each: Number(order === "row_major" ? columns : rows),
      ...{ name: name!, at: at!, stride: Number(stride) },
    })),
    ...[...wgsl.matchAll(store)].map(([, order, name, at, , stride]) => ({
      component: result[1]!,
      lines: Number(result[order === "row_major" ? 3 : 2]),
      each: Number(result[order === "row_major" ? 2 : 3]),
      ...{ name: name!, at: at!, stride: Number(stride) },
    })),
  ];
  const texts = wgsl.match(/subgroupMatrix(?:Load|Store)</g)?.length ?? 0;
  assert.equal(accesses.length, texts, `${kernel} has matrices that are not understood`);
  const known = new Set(GIVEN);
  const places = [
    ...wgsl.matchAll(/^ {2}let (unit\w*|stage_first|sums_first|[ab]_first) = (.+);$/gm),
  ].map(([, place, text]) => {
    const declared = `const ${place} = ${indexText(text!, known)};`;
    known.add(place!);
    return declared;
  });
  const indices = accesses.map(({ at }) => indexText(at, known));
  const firsts = new Function(
    ...[...GIVEN, "min"],
    `${places.join("\n")}\nreturn [${indices.join(", ")}].map(Number);`,
  ) as (...values: unknown[]) => number[];
  const least = (a: bigint, b: bigint) => a < b ? a : b;
  return Array.from({ length: threads / lanes }, (_, subgroup) => subgroup).flatMap((subgroup) =>
    [0n, 1n].flatMap((half) =>
      firsts(BigInt(subgroup), half, half, least).map((first, i) => {
        const { component, lines, each, name, stride } = accesses[i]!;
        const { bytes, size } = arrays.get(name)!;
        const line = Math.ceil(each * BYTES[component]! / bytes);
        assert.ok(first >= 0, `${kernel} ${name}: begins at ${first}`);
        assert.ok(stride >= line, `${kernel} ${name}: rows ${stride} apart, ${line} long`);
        return { name, size, end: first + (lines - 1) * stride + line };
      })
    )
  );
}

/** Asserts that each of a kernel's matrices lies within its array, and gives the largest part of one that they reach. */
export function assertWithin(kernel: Kernel, lanes: number): number {
  const ends = matrixEnds(kernel, lanes);
  assert.ok(ends.length > 0, kernel.name);
  let largest = 0;
  for (const { name, end, size } of ends) {
    assert.ok(end <= size, `${kernel.name}: ${name} has ${size}, a matrix ends at ${end}`);
    largest = Math.max(largest, end / size);
  }
  return largest;
}
