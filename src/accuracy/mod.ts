export { compareTensors } from "./compare.ts";
export type { ResultTiles } from "../problem/result_tiles.ts";
export type { Floors } from "./floors.ts";
export { judge, type Judgement, type JudgeOptions } from "./gate.ts";
export type { ErrorGroup, Grouping } from "./groups.ts";
export { rmsLimit, typicalRms } from "./limits.ts";
export {
  type ErrorSums,
  type GroupMember,
  measureAccuracy,
  type Measured,
  type Outlier,
} from "./measure.ts";
export { EMPTY_RESULT } from "./notes.ts";
export {
  arithmeticPrecision,
  errorScale,
  F16,
  F32,
  F64,
  I32,
  type Precision,
  stored,
} from "./precision.ts";
export type { AccuracyReport, WorstElement } from "./report.ts";
export { type ErrorStatistics, NO_ERRORS } from "./statistics.ts";
export { NO_ERRORS_YARDSTICK, sampleAlone, type Yardstick } from "./yardstick.ts";
export type { MeasureOptions } from "./walk.ts";
