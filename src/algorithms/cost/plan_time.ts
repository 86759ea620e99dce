import { elementCount } from "../../tensor/tensor.ts";
import {
  type DeviceModel,
  moveTime,
  passTime,
  productTime,
  residentWorkgroups,
  waveTime,
} from "../device/model.ts";
import type { Plan } from "../plan.ts";

/**
 * Microseconds of a plan by its passes: each takes as long as its workgroups' multiplications, or as all that it binds
 * takes to move. Rougher than a model of its own: all main loops are alike to it.
 */
export function planTime(plan: Pick<Plan, "passes">, device: DeviceModel): number {
  return plan.passes.reduce((sum, { kernel, grid, bindings, multiplications }) => {
    const workgroups = elementCount(grid);
    const warps = elementCount(kernel.workgroupSize) / 32;
    const waves = waveTime(device, workgroups, residentWorkgroups(device, warps), warps);
    const product = productTime(
      multiplications / workgroups * device.multiprocessors * waves,
      device.rates.planned,
    );
    const bytes = bindings.reduce((all, { size }) => all + size, 0);
    return sum + passTime(product, moveTime(bytes, device.rates.stream), device);
  }, 0);
}
