export {
  type AccuracyReport,
  compareTensors,
  type ErrorSums,
  type GroupMember,
  measureAccuracy,
  type Measured,
  type Outlier,
  type WorstElement,
} from "./measure.ts";
export type { ResultTiles } from "../problem/plan_arithmetic.ts";
export {
  type ErrorStatistics,
  type Floors,
  NO_ERRORS,
  NO_ERRORS_YARDSTICK,
  sampleAlone,
  type Yardstick,
} from "./yardstick.ts";
export { EMPTY_RESULT, judge, type Judgement, type JudgeOptions } from "./gate.ts";
export type { ErrorGroup, Grouping } from "./groups.ts";
export { rmsLimit, typicalRms } from "./limits.ts";
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
export type { MeasureOptions } from "./walk.ts";
