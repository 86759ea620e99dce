import type { Probe } from "./probe.ts";

/** Words of four bytes that a thread loads or stores at once. */
export const WIDTHS = [1, 2, 4] as const;
const TYPES = { 1: "f32", 2: "vec2f", 4: "vec4f" } as const;

/** One way through workgroup memory. */
export interface Way {
  readonly what: "load" | "store";
  readonly width: typeof WIDTHS[number];
  /** Words from a thread's to its neighbour's. */
  readonly stride: number;
  /** Whether half of the threads of every warp of 32 rest. */
  readonly half: boolean;
}

/** Threads of a workgroup, words of its tile, and rows that a round reads or writes one after the other. */
const THREADS = 256;
const WORDS = 8192;
const ROWS = 8;
/** Times that a round goes down the rows. Stores of one round would meet in another's places. */
const TURNS = { load: 4, store: 1 } as const;

/** `STS.128 stride 4`, as NVIDIA's instructions are called. */
export function wayName({ what, width, stride, half }: Way): string {
  const name = `${what === "load" ? "LDS" : "STS"}.${32 * width}`;
  return `${name} stride ${stride}${half ? " half" : ""}`;
}

/**
 * All ways: each width with neighbours side by side, with twice the stride and so on up to a line of all 32 banks, one word
 * beyond that, and, side by side, by half of the threads.
 */
export function ways(): Way[] {
  return (["store", "load"] as const).flatMap((what) =>
    WIDTHS.flatMap((width) => {
      const strides = [1, 2, 4, 8, 16, 32].filter((stride) => stride >= width);
      const all = [...strides, 32 + width].map((stride) => ({ what, width, stride, half: false }));
      return [...all, { what, width, stride: width, half: true }];
    })
  );
}

/** Bytes that a call of the probe moves. */
export function wayBytes({ what, width, half }: Way, rounds: number, workgroups: number): number {
  return 4 * width * ROWS * TURNS[what] * rounds * THREADS * workgroups / (half ? 2 : 1);
}

/**
 * A kernel that does nothing else. The tile is rows of vectors; a round goes down the rows at one place, which moves on by
 * one with each round, so that nothing is loaded or stored twice. Stores leave the round's number, loads add up ones.
 */
export function wayProbe(way: Way, rounds: number, workgroups: number): Probe {
  const { what, width, stride, half } = way;
  const type = TYPES[width];
  const columns = WORDS / ROWS / width;
  const step = stride / width;
  const ones = `${type}(${Array(width).fill("data[t % 4u].x").join(", ")})`;
  const turn = (index: number) => [
    `    { let at = (place + ${index}u) % ${columns}u;`,
    ...(what === "store" ? [`      value = value + one;`] : []),
    ...Array.from(
      { length: ROWS },
      (_, row) =>
        what === "store"
          ? `      tile[${row}][at] = value;`
          : `      sum = sum + tile[${row}][at];`,
    ),
    "    }",
  ];
  const turns = Array.from({ length: TURNS[what] }, (_, index) => turn(index)).flat();
  const wgsl = [
    `var<workgroup> tile: array<array<${type}, ${columns}>, ${ROWS}>;`,
    `@compute @workgroup_size(${THREADS})`,
    "fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) grid: vec3u,",
    "  @builtin(local_invocation_index) t: u32) {",
    `  let one = ${ones};`,
    `  for (var i = t; i < ${ROWS * columns}u; i += ${THREADS}u) {`,
    `    tile[i / ${columns}u][i % ${columns}u] = one;`,
    "  }",
    "  workgroupBarrier();",
    // Strides go round the row, even ones each time one place on.
    `  var place = (t * ${step}u${
      step % 2 === 0 ? ` + t * ${step}u / ${columns}u` : ""
    }) % ${columns}u;`,
    `  var value = ${type}();`,
    `  var sum = ${type}();`,
    `  for (var round = 0u; round < ${rounds}u; round++) {`,
    ...(half ? ["    if ((t & 16u) == 0u) {", ...turns, "    }"] : turns),
    `    place += ${TURNS[what]}u;`,
    "    workgroupBarrier();",
    "  }",
    what === "store"
      ? `  let left = tile[${ROWS - 1}][(place - 1u) % ${columns}u];`
      : "  let left = sum;",
    "  let id = (group.x + group.y * grid.x) * " + `${THREADS}u + t;`,
    `  result[id] = vec4f(${width === 1 ? "left" : "left.x"}, ${
      width === 1 ? "left" : width === 2 ? "left.y" : "left.w"
    }, 0.0f, 0.0f);`,
    "}",
  ].join("\n");
  return {
    name: `workgroup_${what}_${width}_stride${stride}${half ? "_half" : ""}`,
    wgsl,
    threads: THREADS,
    workgroups,
    element: "vec4f",
    workgroupBytes: 4 * WORDS,
    data: new Float32Array(16).fill(1),
    resultBytes: 16 * THREADS * workgroups,
  };
}

/** Where threads left something else than the last value that was stored, or the number of ones that were loaded; -1 for nowhere. */
export function wayFault({ what, half }: Way, rounds: number, result: Float32Array): number {
  const left = (what === "store" ? 1 : ROWS) * TURNS[what] * rounds;
  return result.findIndex((value, i) => {
    const rests = half && Math.floor(i / 4) % 32 >= 16;
    return !rests && value !== (i % 4 < 2 ? left : 0);
  });
}
