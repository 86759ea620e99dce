import { variantTrait } from "../../kernels/main_loop_variant.ts";
import { deviceOf } from "../device/h200.ts";
import { type DeviceModel, deviceText } from "../device/model.ts";
import type { Plan } from "../plan.ts";
import { isRefusal, type Planned, type Refusal, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { rankRivals, requestFor } from "./choose.ts";
import type { Rival } from "../rival.ts";

/** Rivals that the note of a choice names. */
const NAMED = 3;

/**
 * Plans the candidate that is predicted to be fastest; the next one where the device cannot run it. What the last candidate
 * is refused for, if none can be planned.
 */
export function planFastest(
  request: PlanRequest,
  tryPlanConv: (request: PlanRequest) => Planned<Plan>,
): Planned<Plan> {
  const ranked = rankRivals(request);
  const refused: Rival[] = [];
  let last: Refusal | undefined;
  for (const [index, rival] of ranked.entries()) {
    if (rival.reason !== undefined) continue;
    const plan = tryPlanConv(requestFor(request, rival));
    if (isRefusal(plan)) {
      last = plan;
      refused.push({ ...rival, reason: plan.text });
      continue;
    }
    const rivals = [rival, ...ranked.slice(index + 1), ...refused];
    const { predictedMs } = rival;
    const device = deviceOf(request);
    return {
      ...plan,
      ...(predictedMs === undefined ? {} : { predictedMs, predictedDevice: device.name }),
      rivals,
      notes: [...plan.notes, explanation(rivals, device)],
    };
  }
  const reasons = ranked.map((rival) =>
    `${rivalName(rival)}: ${rival.reason ?? "it does not fit"}`
  );
  const how = request.math === "f16x3" ? " in math f16x3" : "";
  return last ?? refusal("problem", `no algorithm can${how} (${reasons.join("; ")})`);
}

/** `winograd2d-nonfused F(4x4,3x3)`, `winrs a4n3r2 half_tile`. */
export function rivalName({ algorithm, tile, pair, variant }: Rival): string {
  return [algorithm, tile, pair].filter((part) => part !== undefined).join(" ") +
    variantTrait(variant).replace("_", " ");
}

/** `auto: winograd2d-nonfused F(4x4,3x3) is predicted to take 0.284 ms on an NVIDIA H200, implicit-gemm 0.65`. */
function explanation([chosen, ...others]: readonly Rival[], device: DeviceModel): string {
  // No rival is `direct`, which is taken where nothing else fits.
  const timed = others.filter(({ predictedMs, reason, algorithm }) =>
    predictedMs !== undefined && !reason && algorithm !== "direct"
  );
  const ms = ({ predictedMs = NaN }: Rival) => predictedMs.toPrecision(3);
  const rest = timed.slice(0, NAMED).map((rival) => `${rivalName(rival)} ${ms(rival)}`);
  const faster = timed.some(({ predictedMs = NaN }) => predictedMs < (chosen!.predictedMs ?? 0));
  return `auto: ${rivalName(chosen!)} is predicted to take ${ms(chosen!)} ms on ${
    deviceText(device)
  }` +
    (rest.length === 0 ? ", nothing else can be taken" : `, ${rest.join(", ")}`) +
    (faster ? "; less error is worth a little time" : "");
}
