import convnextTiny from "../../bench/suites/convnext_tiny.txt" with { type: "text" };
import efficientnetB0 from "../../bench/suites/efficientnet_b0.txt" with { type: "text" };
import gemm from "../../bench/suites/gemm.txt" with { type: "text" };
import gemmThin from "../../bench/suites/gemm_thin.txt" with { type: "text" };
import im2win12 from "../../bench/suites/im2win12.txt" with { type: "text" };
import mobilenetV3 from "../../bench/suites/mobilenet_v3.txt" with { type: "text" };
import moreNetworks from "../../bench/suites/more_networks.txt" with { type: "text" };
import networks from "../../bench/suites/networks.txt" with { type: "text" };
import r3d18 from "../../bench/suites/r3d_18.txt" with { type: "text" };
import resnet3x3 from "../../bench/suites/resnet3x3.txt" with { type: "text" };
import resnet50 from "../../bench/suites/resnet50.txt" with { type: "text" };
import unet from "../../bench/suites/unet.txt" with { type: "text" };
import vgg16 from "../../bench/suites/vgg16.txt" with { type: "text" };
import whisperBase from "../../bench/suites/whisper_base.txt" with { type: "text" };
import winrsBfc from "../../bench/suites/winrs_bfc.txt" with { type: "text" };
import yolov8s from "../../bench/suites/yolov8s.txt" with { type: "text" };

/** Kind of problems in a suite. */
export type SuiteKind = "convolutions" | "products";

/** A built-in suite. */
interface OwnSuite {
  readonly name: string;
  readonly of: SuiteKind;
  readonly text: string;
}

/** All built-in suites. */
export const OWN_SUITES: readonly OwnSuite[] = [
  { name: "resnet3x3", of: "convolutions", text: resnet3x3 },
  { name: "vgg16", of: "convolutions", text: vgg16 },
  { name: "im2win12", of: "convolutions", text: im2win12 },
  { name: "winrs_bfc", of: "convolutions", text: winrsBfc },
  { name: "networks", of: "convolutions", text: networks },
  { name: "more_networks", of: "convolutions", text: moreNetworks },
  { name: "resnet50", of: "convolutions", text: resnet50 },
  { name: "mobilenet_v3", of: "convolutions", text: mobilenetV3 },
  { name: "efficientnet_b0", of: "convolutions", text: efficientnetB0 },
  { name: "convnext_tiny", of: "convolutions", text: convnextTiny },
  { name: "unet", of: "convolutions", text: unet },
  { name: "yolov8s", of: "convolutions", text: yolov8s },
  { name: "whisper_base", of: "convolutions", text: whisperBase },
  { name: "r3d_18", of: "convolutions", text: r3d18 },
  { name: "gemm", of: "products", text: gemm },
  { name: "gemm_thin", of: "products", text: gemmThin },
];

/** A suite's title: its first line. */
export function suiteSubject({ text }: OwnSuite): string {
  return /^# (.*)/.exec(text)?.[1] ?? "";
}
