import type { DeviceModel } from "../../algorithms/device/model.ts";
import type { PlanTime, TimedPlan } from "../../run/time_plans.ts";
import type { ProbedDevice } from "./probes.ts";

/** What a device is measured with. */
export interface Measuring {
  readonly limits: ProbedDevice["limits"];
  readonly matrixUnits?: ProbedDevice["matrixUnits"];
  /** Where it computes on the CPU: how many workgroups run side by side. */
  readonly workgroupsInFlight?: number | undefined;
  /** The model that is kept of the device: figures that come out much alike stay as they are. */
  readonly kept?: DeviceModel | undefined;
  /** Times plans; those of the same call in turn. Names are for people and tests. */
  time(plans: readonly (TimedPlan & { readonly name: string })[]): Promise<PlanTime[]>;
}
