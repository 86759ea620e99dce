/** Products and WinRS on matrix units of every shape that NVIDIA's GPUs have are valid to Dawn's compiler. */
import assert from "#assert";
import { openValidator } from "../src/gpu/validate.ts";
import type { Kernel } from "../src/kernels/kernel.ts";
import { MATRIX_FEATURES, unitShape } from "../src/kernels/matrix_units.ts";
import {
  classKernels,
  kernels,
  PRODUCTS,
  rowKernels,
  sliceKernels,
  splitConvKernels,
} from "./matrix_kernels.ts";

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

/** Value of an index of whole numbers, as WGSL computes it. */
function valueOf(text: string, names: Readonly<Record<string, number>>): number {
  const words = text.replaceAll(/\b(\d+)u\b/g, "$1n").replaceAll(/\b[A-Za-z_]\w*/g, (name) => {
    if (name === "min") return name;
    assert.ok(name in names, `${name} of ${text}`);
    return `${names[name]}n`;
  });
  assert.match(words, /^[\dn\s()+*/%,-]+$|^min\(\d+n, \d+n\)$/);
  return Number(new Function("min", `return ${words}`)((a: bigint, b: bigint) => a < b ? a : b));
}

/** Matrices that a kernel's subgroups load and store, each by the last element of its array and the array's size. */
function matrixEnds({ name: kernel, wgsl, workgroupSize: [threads] }: Kernel, lanes: number) {
  const arrays = new Map(
    [...wgsl.matchAll(/var<workgroup> (\w+): array<(.+), (\d+)>;/g)].map(([, name, type, size]) =>
      [name!, { bytes: BYTES[type!]!, size: Number(size) }] as const
    ),
  );
  const places = [
    ...wgsl.matchAll(/^ {2}let (unit\w*|stage_first|sums_first|[ab]_first) = (.+);$/gm),
  ];
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
  return accesses.flatMap(({ component, lines, each, name, at, stride }) => {
    const { bytes, size } = arrays.get(name)!;
    const line = Math.ceil(each * BYTES[component]! / bytes);
    assert.ok(stride >= line, `${kernel} ${name}: rows ${stride} apart, ${line} long`);
    return Array.from({ length: threads / lanes }, (_, subgroup) => subgroup).flatMap((subgroup) =>
      [0, 1].map((half) => {
        const names: Record<string, number> = { subgroup, half, fill: half };
        for (const [, place, text] of places) names[place!] = valueOf(text!, names);
        return { name, end: valueOf(at, names) + (lines - 1) * stride + line, size };
      })
    );
  });
}

Deno.test("matrices that subgroups load and store lie within workgroup memory, whatever the subgroup", () => {
  for (const one of PRODUCTS) {
    const { lanes } = one;
    let largest = 0;
    const slices = one.dtype === "f16"
      ? [...sliceKernels(one), ...rowKernels(one), ...classKernels(one)]
      : one.dtype === "f32"
      ? splitConvKernels(one)
      : [];
    for (const kernel of [...kernels(one), ...slices]) {
      if (!kernel.features.includes(MATRIX_FEATURES[1]!)) continue;
      const ends = matrixEnds(kernel, lanes);
      const texts = kernel.wgsl.match(/subgroupMatrix(?:Load|Store)</g)!.length;
      assert.equal(ends.length, texts * 2 * kernel.workgroupSize[0] / lanes, kernel.name);
      for (const { name, end, size } of ends) {
        assert.ok(end <= size, `${kernel.name}: ${name} has ${size}, a matrix ends at ${end}`);
        largest = Math.max(largest, end / size);
      }
    }
    // Not far below either: skew is all that is left.
    assert.ok(largest > 0.98, `${largest}`);
  }
});

Deno.test("WinRS on matrix units of every shape fits workgroup memory, and is valid WGSL to dawn", async () => {
  using validator = await openValidator("dawn", { robust: false });
  for (const one of PRODUCTS.filter(({ dtype }) => dtype === "f16")) {
    const all = sliceKernels(one);
    const own = all.filter(({ name }) => name.includes("_mma"));
    assert.equal(own.length, 4 * 7, unitShape(one.unit));
    for (const kernel of all) {
      assert.ok(kernel.workgroupBytes <= 49_152, `${kernel.name} takes ${kernel.workgroupBytes}`);
      const messages = await validator.validate(kernel);
      assert.deepEqual(messages.filter(({ type }) => type === "error"), [], kernel.name);
    }
  }
});

Deno.test("products on matrix units of every shape are valid WGSL to dawn", async () => {
  using validator = await openValidator("dawn", { robust: false });
  for (const one of PRODUCTS) {
    const { lanes } = one;
    const all = [
      ...kernels(one),
      ...one.dtype === "f16" ? [...rowKernels(one), ...classKernels(one)] : [],
      ...one.dtype === "f32" ? splitConvKernels(one) : [],
    ];
    const own = all.filter(({ features }) => features.includes(MATRIX_FEATURES[1]!));
    assert.ok(own.length > 30, `${own.length} kernels`);
    for (const kernel of all) {
      const messages = await validator.validate(kernel);
      assert.deepEqual(messages.filter(({ type }) => type === "error"), [], kernel.name);
    }
    for (const { workgroupSize } of own) assert.equal(workgroupSize[0] % lanes, 0);
  }
});
