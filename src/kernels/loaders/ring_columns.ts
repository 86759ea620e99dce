import type { ModuleBuilder } from "../module.ts";
import { boxes } from "./ring_depth.ts";

/** Channels of a matrix, which follow each other in columns, and taps of a row, one matrix of each before the next channels'. */
export interface RingColumns {
  readonly taps: number;
  readonly block: number;
  /** Channels of a group. */
  readonly channels: number;
}

/** Columns of all taps, channels padded to whole matrices. */
export function ringColumns({ taps, block, channels }: RingColumns, others: number): number {
  return others * boxes(channels, block) * block * taps;
}

/** WGSL of a column's place among taps and channels as filters have them, channels innermost; beyond `columns` where it is none. */
export function ringColumn(
  module: ModuleBuilder,
  { taps, block, channels }: RingColumns,
  column: string,
  columns: string,
): string {
  const count = module.size("ring_channels", channels);
  const blocks = module.size("ring_blocks", boxes(channels, block));
  const matrix = `(${column} / ${block}u)`;
  const rest = `(${matrix} / ${taps}u)`;
  const channel = `(${rest} % ${blocks} * ${block}u + ${column} % ${block}u)`;
  const natural = `(${rest} / ${blocks} * ${taps}u + ${matrix} % ${taps}u) * ${count} + ${channel}`;
  return channels % block === 0 && module.mode === "constant"
    ? natural
    : `select(${columns}, ${natural}, ${channel} < ${count})`;
}
