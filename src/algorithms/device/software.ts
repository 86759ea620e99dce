import { TILE_POLICIES } from "../../kernels/policy.ts";
import cpus from "./cpus.json" with { type: "json" };
import { H200 } from "./h200.ts";
import type { DeviceModel } from "./model.ts";
import { scaledBy } from "./scale.ts";

/**
 * Multiprocessors, or pairs of workgroups in flight, of the machine that the figures in `cpus.json` are of: two cores of an AMD EPYC,
 * with lavapipe (Mesa 22.3.6) and chromium's SwiftShader (Subzero). They are fitted to what every algorithm but WinRS, which `auto` leaves
 * aside there, takes of the 20 problems of `bench/planner_rivals.ts` on a CPU, rates of copies and gradients then by hand to their choices.
 * `scattered` is what fused Winograd has of an H200's shares where channels do not lie innermost.
 */
const MEASURED_ON = 2;

/** A matrix times vectors, by hand, to some thirty products on lavapipe, whose mainloop took up to four times as long as it should. */
const CPU_GEMV = { products: 0.6, apart: 0.06, draw: 2, short: 1 };

/**
 * `shares.policies` where compilers are slow: without matrix units no others than these. What others unroll takes up to three times as long to
 * compile, and SwiftShader took 24 GB for a thin policy's loads. With many results they gain nothing over a thread of 8x8; with
 * few rows or columns lavapipe would take a fifth to a half of the time (`--policy sliver`).
 *
 * @param block What `block` reaches, as `tiny`.
 */
function shortPolicies({ shares: { policies } }: DeviceModel, tiny: number, block: number) {
  const never = Object.fromEntries(TILE_POLICIES.map(({ name }) => [name, 0]));
  return { ...policies, ...never, tiny, block };
}

/** What `block` reaches of `tiny` on GPUs, where it was not measured: less than `small`, whose steps are twice as deep. */
const BLOCK = 1.4;

/**
 * The model of a GPU whose compiler is slow, as is Direct3D's FXC: under Wine on two loaded cores of an AMD EPYC a gemm took 9 s to compile
 * with `tiny`, 12 with `block`, 33 with `tall` and 75 with `small`; non-fused Winograd 25 s with F(4x4,3x3), 160 with F(6x6,3x3).
 */
export function slowlyCompiled(device: DeviceModel): DeviceModel {
  const { tiny = 1 } = device.shares.policies;
  const policies = shortPolicies(device, tiny, BLOCK * tiny);
  return { ...device, slowCompiler: true, shares: { ...device.shares, policies } };
}

/**
 * A CPU that runs so many workgroups of 256 threads side by side, by the figures of its driver, or lavapipe's. It stays a software device
 * whatever figures are given: its loops are cut short, it weighs a CPU's policies in place of those of a GPU that is given, and a
 * transform's threads wait for nothing.
 *
 * @param adapter Its name, e.g. `llvmpipe (LLVM 15.0.6, 256 bits)`.
 * @param given Figures in place of its own.
 */
export function softwareDevice(
  workgroupsInFlight: number,
  adapter = "",
  given?: DeviceModel,
): DeviceModel {
  if (given?.software) return given;
  const multiprocessors = Math.max(1, Math.round(workgroupsInFlight / 2));
  const named = { name: "software", software: true, slowCompiler: true, multiprocessors };
  const { rates, times, strewn, block, thin, scattered } =
    cpus[/swiftshader/i.test(adapter) ? "swiftshader" : "lavapipe"];
  if (given !== undefined) {
    return {
      ...given,
      ...named,
      times: { ...given.times, transform: 0, loads: 0 },
      shares: { ...given.shares, policies: shortPolicies(given, 1, block) },
    };
  }
  const { shares } = H200;
  const { lines, ...others } = shares.sliced.policies;
  const winrs = scaledBy(H200.rates.winrs, rates.winrsOverall / H200.rates.winrsOverall);
  return {
    ...H200,
    ...named,
    rates: scaledBy({ ...rates, winrs }, multiprocessors / MEASURED_ON),
    times,
    shares: {
      ...shares,
      ...{ halfGroups: 1, gemv: CPU_GEMV, strewn },
      policies: shortPolicies(H200, 1, block),
      sliced: { ...shares.sliced, thin, policies: { lines, ...scaledBy(others, scattered) } },
    },
  };
}
