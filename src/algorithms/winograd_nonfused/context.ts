import type { SizeMode } from "../../kernels/module.ts";
import type { SplitDrift } from "../../problem/split_drift.ts";
import type { PlanRequest } from "../request.ts";
import type { BufferList, problemBuffers } from "../tensors.ts";
import type { WinogradGeometry } from "./geometry.ts";
import type { PlannedTile } from "./tiles.ts";

/** What the parts of a plan share. */
export interface Context {
  readonly request: PlanRequest;
  readonly mode: SizeMode;
  readonly tile: PlannedTile;
  readonly geometry: WinogradGeometry;
  readonly buffers: BufferList;
  readonly tensors: ReturnType<typeof problemBuffers>;
  /** Of the transformed operands. */
  readonly operands: readonly [number, number];
  /** Of halves: what is kept of the operands. */
  readonly marks: number | undefined;
  readonly drift: SplitDrift;
}
