import {
  type ConvProblem,
  fillTensor,
  type Layout,
  type Operation,
  printDescriptor,
  problemFromShapes,
  type Tensor,
  tensorShape,
} from "../../web.ts";

/** What an operation reads: X, W, or the output's gradient dY. */
export type Role = "input" | "filter" | "output";

/** The two operands of an operation. */
export const ROLES: Readonly<Record<Operation, readonly [Role, Role]>> = {
  "fwd": ["input", "filter"],
  "bwd-data": ["output", "filter"],
  "bwd-filter": ["input", "output"],
};

/** As the page calls them. */
export const ROLE_NAMES: Readonly<Record<Role, string>> = {
  input: "input X",
  filter: "filter W",
  output: "gradient dY",
};

/** Layouts that the page offers, and the filter's that goes with each. */
export type PageLayout = "nchw" | "nhwc";
export type PageDType = "f32" | "f16";

/** Made data: as `wgconv bench` makes it of seed 1. */
export const MADE = { fill: "uniform01", seed: 1 } as const;
const SEED_OFFSET: Readonly<Record<Role, number>> = { input: 0, filter: 1, output: 2 };

/** A file that a user chose, read. */
export interface OwnFile {
  readonly name: string;
  readonly tensor: Tensor;
}

/** N C H W of a tensor in memory order, or K C R S. */
function canonical(shape: readonly number[], layout: Layout): number[] {
  const [first = 0, ...rest] = shape;
  return layout === "nhwc" ? [first, rest.at(-1) ?? 0, ...rest.slice(0, -1)] : [...shape];
}

/** Memory order of a canonical shape. */
function inMemory(shape: readonly number[], layout: Layout): number[] {
  const [first = 0, channels = 0, ...spatial] = shape;
  return layout === "nhwc" ? [first, ...spatial, channels] : [...shape];
}

/**
 * The problem that two files describe, with the strides, padding, dilation and groups of another one.
 *
 * @throws where no such problem has their shapes.
 */
export function problemOfFiles(
  files: Readonly<Partial<Record<Role, OwnFile>>>,
  { op, layout, like }: {
    readonly op: Operation;
    readonly layout: PageLayout;
    readonly like: ConvProblem;
  },
): string {
  const shapes = Object.fromEntries(
    ROLES[op].map((role) => [role, canonical(files[role]!.tensor.shape, layout)]),
  );
  const { groups, stride, dilation, paddingBegin, paddingEnd } = like;
  const axes = Object.values(shapes)[0]!.length - 2;
  const same = axes === like.inputSize.length;
  return printDescriptor(problemFromShapes({
    op,
    ...shapes,
    groups,
    ...same ? { stride, dilation, padding: [...paddingBegin, ...paddingEnd] } : {},
  }));
}

/**
 * The operands of a problem: of files, or made.
 *
 * @throws {TypeError} where a file has another shape or type.
 */
export function operandsOf(
  problem: ConvProblem,
  files: Readonly<Partial<Record<Role, OwnFile>>>,
  { op, dtype, layout }: {
    readonly op: Operation;
    readonly dtype: PageDType;
    readonly layout: PageLayout;
  },
) {
  return Object.fromEntries(ROLES[op].map((role) => {
    const shape = inMemory(tensorShape(problem, role), layout);
    const file = files[role];
    if (file === undefined) {
      return [role, fillTensor(dtype, shape, MADE.fill, MADE.seed + SEED_OFFSET[role]).data];
    }
    const { name, tensor } = file;
    if (tensor.shape.join() !== shape.join()) {
      throw new TypeError(
        `Cannot read ${name}: it is [${tensor.shape}], the layer's ${
          ROLE_NAMES[role]
        } is [${shape}]`,
      );
    }
    if (tensor.dtype === dtype) return [role, tensor.data];
    if (dtype === "f16") {
      throw new TypeError(`Cannot read ${name}: it holds ${tensor.dtype}, expected f16`);
    }
    return [role, Float32Array.from(tensor.data as ArrayLike<number>, Number)];
  }));
}
