import { defined } from "../../defined.ts";
import { elementsOf } from "../../elements/elements.ts";
import type { Kernel } from "../../kernels/kernel.ts";
import { textHash } from "../../kernels/sized_kernel.ts";
import { type ConvProblem, directFlops } from "../../problem/conv_problem.ts";
import { gemmFlops } from "../../problem/gemm_problem.ts";
import { filterLayoutFor } from "../../tensor/layout.ts";
import type { Algorithm } from "../algorithm.ts";
import { gemmBuffers, type GemmRequest } from "../gemm/operands.ts";
import { refuseBindings } from "../passes.ts";
import type { DeviceLimits, Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned, type Refusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { type BufferList, problemBuffers, resultElements } from "../tensors.ts";
import type { Expression, Names } from "./expression.ts";
import { CONV_NAMES, type OwnKernel, type OwnPass } from "./kernel_file.ts";
import { CHANNEL_OPERANDS, channelOperands } from "../../problem/epilogue.ts";

/** A user's kernel as an algorithm of convolutions. */
export function ownAlgorithm(own: OwnKernel): Algorithm<PlanRequest> {
  return {
    name: own.name,
    options: [],
    dtypes: [own.dtype],
    refuse: (request) => refuseConv(own, request),
    geometry: (request) => request,
    plan: (request, mode) => {
      const { buffers, tensor, ends } = problemBuffers(request, mode);
      const places = { ...tensor, ...ends };
      const names = convNames(request.problem);
      return planOwn(own, names, buffers, places, request.limits, {
        empty: resultElements(request.problem) === 0,
        multiplications: directFlops(request.problem) / 2,
      });
    },
  };
}

/** Plans a product by a user's kernel. */
export function planOwnGemm(own: OwnKernel, request: GemmRequest): Planned<Plan> {
  const { problem, dtype, limits } = request;
  const { m, n, k, batch, transpose, activation, alpha, beta, bias, residual } = problem;
  const bound = new Set(own.passes.flatMap(({ bindings }) => bindings));
  const fault = differs("dtype", own.dtype, dtype) ??
    differs("result", own.outDtype ?? own.dtype, request.outDtype ?? dtype) ??
    differs("transpose", own.transpose ?? "nn", transpose) ??
    differs("activation", own.activation, activation) ??
    (alpha === 1 && (beta === 0 || beta === 1) ? undefined : "alpha is 1 and beta 0 or 1") ??
    unbound("c", beta !== 0, bound) ??
    unbound("bias", bias !== "none", bound) ?? unbound("residual", residual, bound);
  const names = { m, n, k, batch };
  const reason = fault ?? unlessWhen(own, withValues(own, names));
  if (reason !== undefined) {
    return refusal("problem", `${own.name} does not multiply this: ${reason}`);
  }
  const { buffers, place } = gemmBuffers(problem, elementsOf(request), limits, "constant");
  return planOwn(own, names, buffers, place, limits, {
    empty: m * n * batch === 0,
    multiplications: gemmFlops(problem) / 2,
  });
}

/** Why a kernel does not compute a convolution. */
function refuseConv(own: OwnKernel, request: PlanRequest): string | undefined {
  const { problem, dtype, outDtype = dtype, layout, filterLayout, epilogue } = request;
  const bound = new Set(own.passes.flatMap(({ bindings }) => bindings));
  return differs("op", own.op, problem.op) ??
    differs("dtype", own.dtype, dtype) ??
    differs("result", own.outDtype ?? own.dtype, outDtype) ??
    differs("layout", own.layout ?? "nchw", layout) ??
    differs("filter layout", own.filterLayout ?? filterLayoutFor(layout), filterLayout) ??
    differs("activation", own.activation, epilogue.activation) ??
    CHANNEL_OPERANDS.map((role) => unbound(role, channelOperands(epilogue).includes(role), bound))
      .find((reason) => reason !== undefined) ??
    (request.exact === undefined || !request.exact
      ? undefined
      : "whether it is exact is not known") ??
    unlessWhen(own, withValues(own, convNames(problem)));
}

/** Why a kernel is of another kind than is asked for, with the option that asks for its own. */
function differs(what: string, own: string, asked: string): string | undefined {
  const option = what === "result" ? "out-dtype" : what.replace(" ", "-");
  return own === asked ? undefined : `its ${what} is ${own}, --${option} ${own} asks for that`;
}

function unbound(what: string, asked: boolean, bound: ReadonlySet<string>): string | undefined {
  if (asked === bound.has(what)) return undefined;
  return asked ? `it has no ${what}` : `it takes a ${what}`;
}

function unlessWhen({ when }: OwnKernel, names: Names): string | undefined {
  return when === undefined || when.value(names) !== 0 ? undefined : `it asks for ${when.text}`;
}

/** The sizes of a convolution, and 1 (of padding and dilation 0) for axes that it lacks. */
function convNames(problem: ConvProblem): Names {
  const three = (values: readonly number[], lacking: number, less = 0) =>
    [...Array<number>(3 - values.length).fill(lacking), ...values].map((value) => value - less);
  const values = [
    ...[problem.batch, problem.groups, problem.inChannels, problem.outChannels],
    ...three(problem.inputSize, 1),
    ...three(problem.outputSize, 1),
    ...three(problem.filterSize, 1),
    ...three(problem.stride, 1),
    ...three(problem.paddingBegin, 0),
    ...three(problem.dilation, 1, 1),
  ];
  return Object.fromEntries(CONV_NAMES.map((name, i) => [name, values[i]!]));
}

/** Sizes with the values that the kernel derives from them. */
function withValues({ values }: OwnKernel, sizes: Names): Names {
  const names: Record<string, number> = { ...sizes };
  for (const { name, value } of values) names[name] = value(names);
  return names;
}

function planOwn(
  own: OwnKernel,
  sizes: Names,
  buffers: BufferList,
  places: Readonly<Record<string, number | undefined>>,
  limits: DeviceLimits,
  work: { readonly empty: boolean; readonly multiplications: number },
): Planned<Plan> {
  const names = withValues(own, sizes);
  const all: Record<string, number | undefined> = { ...places };
  for (const { name, value } of own.buffers) {
    const bytes = whole(`buffer ${name}`, value, names);
    if (isRefusal(bytes)) return bytes;
    all[name] = buffers.add(name, "workspace", Math.ceil(bytes / 4), "f32");
  }
  const passes: Pass[] = [];
  for (const [i, pass] of (work.empty ? [] : own.passes).entries()) {
    const kernel = kernelOf(own, i, names);
    const grid = gridOf(pass, names);
    if (isRefusal(kernel)) return kernel;
    if (isRefusal(grid)) return grid;
    passes.push({
      kernel,
      grid,
      bindings: pass.bindings.map((name) => {
        const buffer = all[name]!;
        return { buffer, offset: 0, size: buffers.list[buffer]!.bytes };
      }),
      multiplications: i === 0 ? work.multiplications : 0,
    });
  }
  const large = passes.flatMap(({ bindings }) => bindings)
    .find(({ size }) => size > limits.maxStorageBufferBindingSize);
  if (large !== undefined) {
    return refusal(
      "limit",
      `${buffers.list[large.buffer]!.name} takes ${large.size} bytes, ` +
        `a binding of the device ${limits.maxStorageBufferBindingSize}`,
    );
  }
  return refuseBindings({ passes }, limits) ?? buffers.plan({
    kernel: own.name,
    algorithm: own.name,
    passes,
    multiplications: work.multiplications,
    arithmetic: defined(own.arithmetic),
    notes: [`a kernel of a file, of ${passes.length} ${passes.length === 1 ? "pass" : "passes"}`],
  });
}

/** A pass's kernel with the values of its overrides. */
function kernelOf(own: OwnKernel, i: number, names: Names): Planned<Kernel> {
  const { wgsl, file, entry, kinds, features, overrides } = own.passes[i]!;
  const constants: Record<string, number> = {};
  for (const { name, value } of overrides) {
    const number = value(names);
    if (!Number.isFinite(number)) return refusal("problem", `override ${name} is ${number}`);
    constants[name] = number;
  }
  const hash = textHash(JSON.stringify([wgsl, entry, constants]));
  return {
    name: `${own.name}_${i}.${hash}`,
    wgsl,
    file,
    entry,
    constants,
    // The device checks both when it compiles the WGSL.
    workgroupSize: [1, 1, 1],
    workgroupBytes: 0,
    bindings: kinds,
    features,
  };
}

function gridOf({ workgroups }: OwnPass, names: Names): Planned<[number, number, number]> {
  const grid: [number, number, number] = [1, 1, 1];
  for (const [axis, value] of workgroups.entries()) {
    const count = whole(`workgroups ${"xyz"[axis]}`, value, names);
    if (isRefusal(count)) return count;
    grid[axis] = count;
  }
  return grid;
}

function whole(what: string, value: Expression, names: Names): number | Refusal {
  const number = value(names);
  return Number.isSafeInteger(number) && number >= 1
    ? number
    : refusal("problem", `${what} is ${number}, expected a whole number >= 1`);
}
