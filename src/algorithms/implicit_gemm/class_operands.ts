import { elementsOf } from "../../elements/elements.ts";
import type { Axis } from "../../kernels/axes.ts";
import {
  classPlaces,
  type ClassResults,
  classRows,
  classSides,
  classSteps,
  classText,
  classWindow,
  mostTaps,
  tapShare,
  tileClasses,
} from "../../kernels/stride_classes.ts";
import { loadedTensor } from "../../kernels/loader.ts";
import { classFilterLoader, classTap } from "../../kernels/loaders/filter.ts";
import { gatherLoader } from "../../kernels/loaders/gather.ts";
import { packedLoader } from "../../kernels/loaders/matrix.ts";
import type { PackShape } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import type { Layout } from "../../tensor/layout.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { ceilTo, groupOf, packedShape, spatialAxes, stridesOf } from "../geometry.ts";
import type { PlanRequest } from "../request.ts";
import {
  type Access,
  accessVector,
  type FilterOperand,
  filterOperands,
  layoutTrait,
  loadVector,
  type Operands,
} from "./access.ts";

interface SidedAxis {
  readonly axis: Axis;
  /** Whether its classes are rows of a tile, which has the window of all; else each class has tiles and taps of its own. */
  readonly rows: boolean;
  readonly grid: number;
  readonly first: number;
  /** As `PackShape` has it. */
  readonly lead: number;
  /** What a tile walks along: of an axis in rows its window, as one class. */
  readonly walked: Axis;
}

/**
 * Backward-data with strides as products without holes: every way of having the classes of an axis in rows or in tiles of
 * their own. Rows read the gradient once and fill tiles where channels are few, but classes of fewer taps multiply zeros.
 *
 * @param results How the results lie.
 */
export function classOperands(
  request: PlanRequest,
  results: Layout,
): readonly [Operands, ...Operands[]] {
  const { problem } = request;
  const source = stridesOf(request, "output");
  const axes = spatialAxes(problem, "backward", source);
  const ways = axes.reduce<SidedAxis[][]>((ways, axis) => {
    const window = classWindow(axis);
    const sides = [
      ...(window === undefined ? [] : [{
        ...window,
        axis,
        rows: true,
        walked: {
          ...axis,
          places: window.grid,
          taps: window.taps,
          stride: 1,
          padding: window.origin,
        },
      }]),
      ...(axis.stride === 1
        ? []
        : [{ axis, rows: false, grid: classPlaces(axis), first: 0, lead: 0, walked: axis }]),
    ];
    return ways.flatMap((way) => sides.map((side) => [...way, side]));
  }, [[]]);
  const [first, ...others] = ways.flatMap((way) => sidedOperands(request, results, way));
  return [first!, ...others];
}

/** With the filter packed, and as it lies where rows are its channels. */
function sidedOperands(
  request: PlanRequest,
  lying: Layout,
  sides: readonly SidedAxis[],
): Operands[] {
  const { problem, layout } = request;
  const { batch, groups } = problem;
  const elements = elementsOf(request);
  const { inputs: rowChannels, outputs: channels } = groupOf(request);
  const source = stridesOf(request, "output");
  const target = stridesOf(request, "input", lying);
  const batchInner = layout === "chwn";
  const inner = lying === "nhwc" ? "channels" : "classes";
  const value = elements.tile;
  const b: Access = layout === "nhwc"
    ? {
      along: "depth",
      vector: loadVector(channels),
      value,
      gathered: true,
      steps: [channels],
      pitch: source.at(-1)!,
    }
    : { along: "place", vector: batchInner ? loadVector(batch) : 1, value, steps: [batch] };
  const results: ClassResults = {
    channels: rowChannels,
    channelStride: target[1]!,
    batch,
    batchStride: target[0]!,
    batchInner,
    inner,
    axes: sides.map(({ axis, rows, grid, first }, d) => ({
      grid,
      places: axis.places,
      stride: axis.stride,
      rows,
      first,
      placeStride: target[2 + d]!,
    })),
  };
  const rows = classRows(results);
  const walked = sides.map(({ walked }) => walked);
  const classes = tileClasses(results);
  const tiled = classes > 1;
  const most = elementCount(walked.map(mostTaps));
  const share = tapShare(walked);
  // Whole steps, so that each lies within a tap.
  const padded = ({ depth }: TilePolicy) => ceilTo(channels, depth);
  const pack = (policy: TilePolicy): PackShape => {
    const taps = elementCount(walked.map(({ taps }) => taps));
    const paddedChannels = padded(policy);
    const shape = {
      ...packedShape(request, policy, paddedChannels),
      rows,
      paddedRows: ceilTo(rows, policy.rows),
      taps,
      depth: taps * paddedChannels,
    };
    if (rows === rowChannels) return shape;
    const axes = sides.map(({ axis, rows, lead, walked }) => ({
      stride: rows ? axis.stride : 1,
      lead,
      taps: axis.taps,
      most: walked.taps,
    }));
    return { ...shape, classes: { inner, channels: rowChannels, axes } };
  };
  const filters = filterOperands(request, {
    pack,
    taps: walked.map(({ taps }) => taps),
    packed(module, tensor, { paddedRows: places, depth, paddedChannels }, policy, vector) {
      const shape = { places, depth, tileDepth: policy.depth, paddedChannels, vector };
      return tiled
        ? classFilterLoader(module, tensor, walked, shape)
        : packedLoader(module, "a", tensor, shape);
    },
    // Rows that are classes have taps of their own.
    lying: tiled && rows === rowChannels
      ? (module) => ({
        tap: classTap(module, walked),
        row: (place) => `${place} - class_row`,
      })
      : undefined,
  });
  const withFilter = (one: FilterOperand): Operands => ({
    rows,
    columns: batch * elementCount(sides.map(({ grid }) => grid)),
    batches: groups * classes,
    ...(tiled
      ? {
        share,
        loopRows: (policy) => classes * pack(policy).paddedRows,
        uneven: (module, policy) => ({
          share,
          text: classText(module, walked, pack(policy).paddedRows),
          classes,
          steps: `class_taps * ${module.size("class_blocks", padded(policy) / policy.depth)}`,
        }),
      }
      : {}),
    a: one.access,
    b,
    left: "filter",
    // Where all rows are as deep, the last step's padding can be left out.
    depth: (policy) => most * padded(policy) - (tiled ? 0 : padded(policy) - channels),
    pack: one.pack,
    loaders(module, policy, split) {
      const vector = accessVector(policy, b);
      const gradient = loadedTensor(module, "output", vector, split("b"), elements);
      return [
        one.loader(module, policy, split("a")),
        gatherLoader(module, gradient, {
          direction: "backward",
          axes: sides.map(({ walked, grid }) => ({
            ...walked,
            places: grid,
            dilation: classSteps(walked).dilation,
          })),
          classes: tiled,
          source: {
            batch,
            channels,
            batchStride: source[0]!,
            channelStride: source[1]!,
            pitch: b.pitch,
          },
          paddedChannels: padded(policy),
          batchInner,
          interleave: 1,
          along: b.along,
          vector,
          tileDepth: policy.depth,
          walk: "tap",
        }),
      ];
    },
    result: {
      classes: results,
      // One group begins at the beginning, whatever its channels divide.
      group: groups === 1 ? 0 : rowChannels * target[1]!,
    },
    crossesTaps: () => false,
    trait: (policy) =>
      `${layoutTrait(request, lying)}_${sides.length}d_classes_${classSides(results)}_${
        one.trait(policy)
      }b${accessVector(policy, b)}`,
    classes: `${elementCount(problem.stride)} classes, products of ${rows} rows and ` +
      (share < 1 ? `${most} taps at most` : `${most} taps`),
  });
  return filters.map(withFilter);
}
