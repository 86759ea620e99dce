import { typeName, zeroOf } from "../../elements/scalar.ts";
import { BARRIER, block, type Statement, text } from "../ir/tree.ts";
import { lines, range } from "../lists.ts";
import type { StepProducts } from "./mainloop.ts";
import {
  type MatrixMemory,
  type MatrixOperandTile,
  type MatrixTilePolicy,
  subgroupGrid,
} from "./matrix_tile.ts";
import { matrixSubgroups, unitDepth } from "../matrix_units.ts";
import type { FragmentPlaces, OutputStore } from "../output.ts";
import type { MatrixTile } from "../policy.ts";
import { cyclicProducts, ringProducts, rowEnds } from "./tap_products.ts";

/** Products that subgroups compute on matrix units. */
export interface MatrixProducts {
  readonly policy: MatrixTilePolicy;
  readonly memory: MatrixMemory;
  /** Values along the depth of the last step, where it is a text of its own: whole matrices. */
  readonly last?: number | undefined;
  /**
   * When sums are added as f32 should be: units cut sums off instead of rounding them (`unitChain()`). At the end alone where absent.
   */
  readonly flush: UnitFlush | undefined;
}

/** How often sums leave the accumulators of matrix units, and where they are added up. */
export interface UnitFlush {
  /** Steps from one flush to the next. */
  readonly interval: number;
  readonly totals: "registers" | "result";
}

/** Declares which results are the subgroup's, and which of the staged ones are the thread's. */
export function matrixPlaces(policy: MatrixTilePolicy, memory: MatrixMemory): string {
  const { unit, lanes, matrices, stage } = policy.matrix;
  const [down, across] = subgroupGrid(policy);
  const vectors = stage[1] * unit.n / 4;
  if (lanes % vectors !== 0 || stage[0] * unit.m / 4 * vectors % lanes !== 0) {
    throw new Error(`Cannot deal ${stage.join(" x ")} matrices to ${lanes} threads`);
  }
  return [
    // A device may run more subgroups than were asked for: these load nothing from elsewhere.
    `  let unit = min(subgroup, ${down * across - 1}u);`,
    `  let unit_row = (unit / ${across}u) * ${matrices[0] * unit.m}u;`,
    `  let unit_column = (unit % ${across}u) * ${matrices[1] * unit.n}u;`,
    `  let stage_first = unit * ${memory.stage.size}u;`,
    ...(memory.stage.byColumns
      ? [
        `  let stage_row = lane % ${lanes / vectors}u * 4u;`,
        `  let stage_vector = lane / ${lanes / vectors}u;`,
      ]
      : [
        `  let stage_row = lane / ${vectors}u * 4u;`,
        `  let stage_vector = lane % ${vectors}u;`,
      ]),
    ...memory.tiles.map(({ places }) => places),
  ].join("\n");
}

/** The rounds in which matrices are staged: row and column of the first one of each. */
function rounds({ matrices, stage }: MatrixTile): readonly (readonly [number, number])[] {
  const of = (side: 0 | 1) => range(matrices[side] / stage[side]).map((i) => i * stage[side]);
  return of(0).flatMap((row) => of(1).map((column) => [row, column] as const));
}

/** A thread's fragments of 4 x 4 results in a round, all in the same columns, and rows from one to the next. */
function fragmentsOf({ unit, lanes, stage }: MatrixTile): { count: number; rows: number } {
  const high = 4 * lanes / (stage[1] * unit.n / 4);
  return { count: stage[0] * unit.m / high, rows: high };
}

/** A thread's vectors in a round, four columns of a row each: statements that read them, and their WGSL. */
function stagedVectors(
  tile: MatrixTile,
  { byColumns, stride, read }: MatrixMemory["stage"],
): { readonly reads: readonly string[]; readonly sums: readonly string[] } {
  const { count, rows } = fragmentsOf(tile);
  const fragments = range(count).map((fragment) => {
    const first = fragment * rows;
    const four = [0, 1, 2, 3];
    if (!byColumns) {
      const sums = four.map((i) =>
        read(`stage_first + (stage_row + ${first + i}u) * ${stride}u + stage_vector`)
      );
      return { reads: [], sums };
    }
    const line = (j: number) => `line${fragment}_${j}`;
    const reads = four.map((j) => {
      const at = `(stage_vector * 4u + ${j}u) * ${stride}u + (stage_row + ${first}u) / 4u`;
      return `    let ${line(j)} = ${read(`stage_first + ${at}`)};`;
    });
    const vector = typeName(tile.unit.result, 4);
    const sums = four.map((i) => `${vector}(${four.map((j) => `${line(j)}[${i}]`).join(", ")})`);
    return { reads, sums };
  });
  return {
    reads: fragments.flatMap(({ reads }) => reads),
    sums: fragments.flatMap(({ sums }) => sums),
  };
}

/**
 * The statements that stage a round's matrices in workgroup memory: the epilogue needs single elements, which threads cannot read from
 * a matrix.
 */
function stageText(
  tile: MatrixTile,
  { byColumns, stride, array }: MatrixMemory["stage"],
  [firstRow, firstColumn]: readonly [number, number],
): Statement[] {
  const { unit, stage } = tile;
  const order = byColumns ? "col_major" : "row_major";
  const stores = range(stage[0]).flatMap((i) =>
    range(stage[1]).map((j) => {
      const at = byColumns ? i * unit.m / 4 : i * unit.m * stride + j * unit.n / 4;
      const sum = sumName(firstRow + i, firstColumn + j);
      return `    subgroupMatrixStore<${order}>(&${array}, stage_first + ${at}u, ${sum}, ${stride}u);`;
    })
  );
  return [BARRIER, text(lines(stores)), BARRIER];
}

function sumName(row: number, column: number): string {
  return `sum${row}_${column}`;
}

/** A matrix of an operand: name, type, and the WGSL that loads it. */
interface LoadedMatrix {
  readonly name: string;
  readonly type: string;
  readonly load: string;
}

/**
 * The matrices of an operand in one product: one for each place; of operands in halves a high one and a low one, which follows down the
 * depth.
 */
function operandsOf(
  operand: "a" | "b",
  { type, load }: MatrixOperandTile,
  count: number,
  places: number,
  step: number,
  { split }: MatrixTile,
): LoadedMatrix[][] {
  return range(count).map((i) => {
    const name = `${operand}${i}`;
    const loaded = (name: string, step: number) => ({ name, type, load: load(i * places, step) });
    return split
      ? [loaded(name, 2 * step), loaded(`${name}_low`, 2 * step + 1)]
      : [loaded(name, step)];
  });
}

/**
 * The products of a step of operands in halves, small ones first. The product of two low halves is below f32's precision. A's low halves
 * are dropped before its high ones are loaded, because registers are short.
 */
function splitProducts(
  lefts: readonly LoadedMatrix[][],
  rights: readonly LoadedMatrix[][],
  load: (matrix: LoadedMatrix) => string,
  multiply: (row: number, column: number, a: string, b: string) => string,
): string[] {
  const products = (column: number, [x, y]: readonly [string, string]) =>
    lefts.map((_, row) => multiply(row, column, `a${row}${x}`, `b${column}${y}`));
  return [
    ...rights.map(([high]) => load(high!)),
    "    {",
    ...lefts.map(([, low]) => load(low!)),
    ...rights.flatMap((_, column) => products(column, ["_low", ""])),
    "    }",
    ...lefts.map(([high]) => load(high!)),
    ...rights.flatMap(([, low], column) => [
      load(low!),
      ...products(column, ["", "_low"]),
      ...products(column, ["", ""]),
    ]),
  ];
}

/** The text of a subgroup's products of a step. */
export function matrixProducts(
  { policy, memory, last, flush }: MatrixProducts,
): StepProducts {
  const { matrix } = policy;
  const { unit, matrices: [rows, columns] } = matrix;
  const { tiles: [a, b], stage } = memory;
  const ahead = memory.buffers === "register-double";
  const matricesDeep = (depth: number) => depth / unitDepth(unit) / (matrix.split ? 2 : 1);
  const sumType = `subgroup_matrix_result<${unit.result}, ${unit.n}, ${unit.m}>`;
  const allSums = range(rows).flatMap((i) => range(columns).map((j) => sumName(i, j)));
  const left = (step: number) => operandsOf("a", a, rows, unit.m, step, matrix);
  const right = (step: number) => operandsOf("b", b, columns, unit.n, step, matrix);
  const multiply = (row: number, column: number, a: string, b: string) => {
    const sum = sumName(row, column);
    return `      ${sum} = subgroupMatrixMultiplyAccumulate(${a}, ${b}, ${sum});`;
  };
  const multiplied = (column: number) =>
    range(rows).map((row) => multiply(row, column, `a${row}`, `b${column}`));
  const load = ({ name, load }: LoadedMatrix) => `      let ${name} = ${load};`;
  const loaded = (operands: readonly LoadedMatrix[]) => operands.map(load);
  const { ring, cyclic } = b;
  const sides = [
    { tile: a, each: unit.m, count: rows },
    { tile: b, each: unit.n, count: columns },
  ] as const;
  const deep = cyclic?.deep ?? matricesDeep(policy.depth);
  const ringed = ring && ringProducts(ring, rows, sides[1], deep, multiply);
  const step = (at: number, taps?: readonly number[]) => {
    if (cyclic !== undefined) return cyclicProducts(...sides, cyclic, at, multiply);
    if (matrix.split) return splitProducts(left(at), right(at), load, multiply);
    return [
      ...loaded(left(at).flat()),
      ...(ringed?.multiply(at, taps) ??
        right(at).flatMap((matrices, j) => [...loaded(matrices), ...multiplied(j)])),
    ];
  };
  const operands = [...left(0), ...right(0)].flat();
  const multiplyAndLoad = [
    ...operands.map(({ name, load }) => `      let next_${name} = ${load};`),
    ...right(0).flatMap((_, j) => multiplied(j)),
    ...operands.map(({ name }) => `      ${name} = next_${name};`),
  ];
  const braces = (lines: readonly string[]) => ["    {", ...lines, "    }"].join("\n");
  const all = range(deep);
  const steps = (ahead ? [multiplyAndLoad] : all.map((at) => step(at))).map(braces);
  const totalled = flush?.totals === "registers";
  const staged = stagedVectors(matrix, stage);
  const moved = rounds(matrix).map((first, round) =>
    block([
      ...stageText(matrix, stage, first),
      text(lines(staged.reads)),
      text(lines(staged.sums.map((sum, i) => `    total${round}_${i} += ${sum};`))),
    ])
  );
  return {
    declarations: memory.declarations,
    subgroups: matrixSubgroups(unit, matrix.lanes),
    ...(ring && ringed && {
      loopCarried: {
        begin: ringed.begin.join("\n"),
        next: all.map((at) => braces(ringed.next(at))).join("\n"),
        rowEnds: rowEnds(ring, (taps) => all.map((at) => braces(step(at, taps))).join("\n")),
      },
    }),
    sums: [
      ...(ahead ? operands.map(({ name, type }) => `  var ${name}: ${type};`) : []),
      ...allSums.map((sum) => `  var ${sum} = ${sumType}();`),
      ...(totalled
        ? rounds(matrix).flatMap((_, round) =>
          staged.sums.map((_, sum) => `  var total${round}_${sum} = ${zeroOf(unit.result, 4)};`)
        )
        : []),
    ].join("\n"),
    ...(ahead
      ? { loadFragments: operands.map(({ name, load }) => `    ${name} = ${load};`).join("\n") }
      : {}),
    rows: steps,
    lastRows: last === undefined ? undefined : steps.slice(0, matricesDeep(last)),
    fold: "",
    finish: totalled ? moved : [],
    flush: flush && {
      interval: `${flush.interval}u`,
      clear: lines(allSums.map((sum) => `    ${sum} = ${sumType}();`)),
      stored: !totalled,
    },
  };
}

/** The epilogue: sums round by round, through workgroup memory. */
export function matrixOutput(
  { matrix }: MatrixTilePolicy,
  { stage, tiles }: MatrixMemory,
  output: OutputStore,
  flush: UnitFlush | undefined,
): Statement[] {
  const { unit } = matrix;
  // Places from one column of a matrix to the next: with rows of taps matrices share places cyclically.
  const apart = tiles[1].cyclic?.matrices ?? 1;
  const fours = unit.n / 4;
  const fragments = fragmentsOf(matrix);
  const kept = flush?.totals === "registers";
  const stored = flush?.totals === "result";
  const all = rounds(matrix);
  const staged = stagedVectors(matrix, stage);
  const placesOf = ([row, column]: readonly [number, number]): FragmentPlaces => ({
    fragmentRows: fragments.count,
    fragmentColumns: 1,
    sum: unit.result,
    row: (i) => `first_row + unit_row + stage_row + ${row * unit.m + i * fragments.rows}u`,
    ...(apart === 1
      ? {
        column: () => `first_column + unit_column + ${column * unit.n}u + stage_vector * 4u`,
      }
      : {
        columnStep: apart,
        column: () =>
          `first_column + unit_column + ${column}u + stage_vector / ${fours}u + stage_vector % ${fours}u * ${
            4 * apart
          }u`,
      }),
  });
  const totals = (round: number) => `total${round}_`;
  // Earlier sums are loaded a round ahead.
  const load = (round: number) =>
    stored && round < all.length
      ? [text(output.totals!(placesOf(all[round]!), totals(round)))]
      : [];
  return [
    ...load(0),
    ...all.flatMap((first, round) => [
      ...load(round + 1),
      block([
        ...(kept ? [] : [...stageText(matrix, stage, first), text(lines(staged.reads))]),
        text(
          lines(
            staged.sums.map((sum, i) => `    let c${i}_0 = ${kept ? `total${round}_${i}` : sum};`),
          ),
        ),
        text(output.text(placesOf(first), stored ? totals(round) : undefined)),
      ]),
    ]),
  ];
}
