import { parseDescriptor, printDescriptor } from "../../web.ts";
import im2win12 from "../../bench/suites/im2win12.txt" with { type: "text" };
import moreNetworks from "../../bench/suites/more_networks.txt" with { type: "text" };
import networks from "../../bench/suites/networks.txt" with { type: "text" };
import resnet3x3 from "../../bench/suites/resnet3x3.txt" with { type: "text" };
import vgg16 from "../../bench/suites/vgg16.txt" with { type: "text" };
import winrsBfc from "../../bench/suites/winrs_bfc.txt" with { type: "text" };

/** A layer of a network: what it is called there, and its descriptor. */
export interface Layer {
  readonly name: string;
  readonly descriptor: string;
}

/** Layers of the built-in suites by their networks: those before `_` in a layer's name, or the suite. */
export const NETWORKS: ReadonlyMap<string, readonly Layer[]> = Map.groupBy(
  [
    ...layersOf(networks),
    ...layersOf(moreNetworks),
    ...layersOf(resnet3x3, "resnet3x3"),
    ...layersOf(vgg16, "vgg16"),
    ...layersOf(im2win12, "im2win12"),
    ...layersOf(winrsBfc, "winrs_bfc"),
  ],
  ({ network }) => network,
);

function layersOf(suite: string, network?: string) {
  return suite.split("\n").filter((line) => /^(g\d+)?mb\d/.test(line)).map((line) => {
    const descriptor = line.trim();
    const name = (parseDescriptor(descriptor).name ?? descriptor).replace(/\*\d+$/, "");
    const [before, ...rest] = name.split("_");
    return network === undefined && rest.length > 0
      ? { network: before!, name: rest.join("_"), descriptor }
      : { network: network ?? "others", name, descriptor };
  });
}

/** A layer's descriptor for another batch size. */
export function withBatch(descriptor: string, batch: number): string {
  return printDescriptor({ ...parseDescriptor(descriptor), batch });
}
