/**
 * What a device reaches, for predicting times. A product's time is its {@linkcode Cut.cost}, in multiply-adds of a
 * fully used device, over one of the rates.
 */
export interface DeviceRates {
  /** TFLOP/s of the main loop on operands that lie as it reads them: transformed or packed. */
  readonly packed: number;
  /** TFLOP/s of the main loop where it gathers images on the way: implicit GEMM, forward and backward-data. */
  readonly gathered: number;
  /** The same where it gathers both operands, backward-filter: with lines along the depth (nhwc), and across. */
  readonly correlated: { readonly along: number; readonly across: number };
  /**
   * TFLOP/s of fused Winograd's products on busy multiprocessors: one tiled axis with up to 64 results a thread and with
   * more, and two tiled axes; and the shares of it that are left with small tiles, with
   * 16 results a thread (the main loop's own loss), and where the registers of all threads do not fit.
   */
  readonly sliced: {
    readonly one: number;
    readonly oneWide: number;
    readonly two: number;
    readonly small: number;
    readonly thin: number;
    readonly spilled: number;
  };
  /** TB/s at which all of a fused kernel's workgroups store: whole lines (channels innermost), and single elements. */
  readonly slicedStore: { readonly lines: number; readonly scattered: number };
  /** TFLOP/s of products in plans that have no model of their own, filling and storing of tiles included. */
  readonly planned: number;
  /** TFLOP/s of one thread a result. */
  readonly direct: number;
  /** TB/s that passes read and write beside products. */
  readonly stream: number;
  /** TB/s of the pass that transforms or packs a filter: small, and strided. */
  readonly filterStream: number;
  /** Time that a dispatch costs beside its work, in µs. */
  readonly dispatch: number;
  /** Time of WinRS with α = 16 over the predicted one, where channels do not lie innermost. */
  readonly winrsAcross: number;
}

/**
 * An NVIDIA H200: fitted to `bench/results/h200-2026-11-20/variants.jsonl` (`bench/planner_check.ts` shows how well),
 * but for `direct`, of which nothing was measured.
 */
export const H200_RATES: DeviceRates = {
  packed: 52,
  gathered: 46.5,
  correlated: { along: 44, across: 39 },
  sliced: { one: 37, oneWide: 35, two: 24.7, small: 0.78, thin: 0.25, spilled: 0.2 },
  slicedStore: { lines: 2.1, scattered: 0.44 },
  planned: 42,
  direct: 5,
  stream: 4.5,
  filterStream: 2.3,
  dispatch: 2.9,
  winrsAcross: 1.5,
};
