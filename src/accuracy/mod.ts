export { compareTensors } from "./compare.ts";
export {
  channelRmsLimit,
  type Gate,
  gateFor,
  type GateOptions,
  independentErrors,
  judge,
  relL2Limit,
} from "./gate.ts";
export { measureAccuracy, type MeasureOptions } from "./measure.ts";
export { mixedReference } from "./mixed.ts";
export type { AccuracyReport, WorstElement } from "./report.ts";
