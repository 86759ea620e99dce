import assert from "#assert";
import { parseDescriptor, printDescriptor } from "./descriptor.ts";

/** Descriptors as benchdnn's documentation and shape files write them, and the problem in full. */
const DESCRIPTORS: readonly [text: string, canonical: string, what: string][] = [
  [
    'ic3ih227iw227_oc96oh55ow55_kh11kw11_sh4sw4ph0pw0_n"alexnet:conv1"',
    "g1mb2ic3oc96 h227k11o55s4p0+0d0 w227k11o55s4p0+0d0",
    "every size given, the batch left out",
  ],
  [
    "g20_mb1_ic20ih10_oc20oh10_kh3ph1",
    "g20mb1ic20oc20 h10k3o10s1p1+1d0 w10k3o10s1p1+1d0",
    "depthwise, underscores",
  ],
  [
    'mb50ic64ih56oc64oh28kh3sh2ph1n"resnet:res2c*2"',
    "g1mb50ic64oc64 h56k3o28s2p1+1d0 w56k3o28s2p1+1d0",
    "a stride, a layer that occurs twice",
  ],
  ["g1ic3oc16_iw5ow5kw3pw1", "g1mb2ic3oc16 w5k3o5s1p1+1d0", "one axis"],
  ["g17ic17oc17_iw8ow4kw3pw1sw2", "g17mb2ic17oc17 w8k3o4s2p1+1d0", "one axis, depthwise, strided"],
  [
    "g4ic20oc20_id8od4kd3pd1sd2",
    "g4mb2ic20oc20 d8k3o4s2p1+1d0 h8k3o4s2p1+1d0 w8k3o4s2p1+1d0",
    "a cube of its depth",
  ],
  [
    "ic16oc16_ih13kh3ph1_iw50kw3pw1_id10kd3pd1",
    "g1mb2ic16oc16 d10k3o10s1p1+1d0 h13k3o13s1p1+1d0 w50k3o50s1p1+1d0",
    "three axes, in any order",
  ],
  [
    "g1ic2oc4_id16od8kd2sd2dd0pd0_ih12oh6kh2sh2dh0ph0_iw8ow4kw2sw2dw0pw0",
    "g1mb2ic2oc4 d16k2o8s2p0+0d0 h12k2o6s2p0+0d0 w8k2o4s2p0+0d0",
    "everything said",
  ],
  [
    "ic8ih60iw80oc8oh60ow80kh3kw3ph2pw2dh1dw1",
    "g1mb2ic8oc8 h60k3o60s1p2+2d1 w80k3o80s1p2+2d1",
    "dilation from 0",
  ],
  ["ic17oc17_iw8ow5kw3pw3sw2", "g1mb2ic17oc17 w8k3o5s2p3+0d0", "less padding behind than in front"],
  [
    "ic4ih10oc4oh10kh4",
    "g1mb2ic4oc4 h10k4o10s1p1+2d0 w10k4o10s1p1+2d0",
    "padding derived from the output",
  ],
  ["ic4ih9oc4kh3", "g1mb2ic4oc4 h9k3o7s1p0+0d0 w9k3o7s1p0+0d0", "the output derived, no padding"],
  [
    "ic3ih20iw30oc8oh10ow30kh3kw1sh2ph1",
    "g1mb2ic3oc8 h20k3o10s2p1+1d0 w30k1o30s1p0+0d0",
    "an axis said in full does not copy stride and padding",
  ],
  ["ic6ih1iw24oc6oh1ow22kh1kw3", "g1mb2ic6oc6 h1k1o1s1p0+0d0 w24k3o22s1p0+0d0", "a flat picture"],
];

for (const [text, canonical, what] of DESCRIPTORS) {
  Deno.test(`parseDescriptor() reads ${text}: ${what}`, () => {
    const problem = parseDescriptor(text);
    const names = ["d", "h", "w"].slice(-problem.inputSize.length);
    const axes = names.map((name, i) =>
      `${name}${problem.inputSize[i]}k${problem.filterSize[i]}o${problem.outputSize[i]}` +
      `s${problem.stride[i]}p${problem.paddingBegin[i]}+${problem.paddingEnd[i]}` +
      `d${problem.dilation[i]! - 1}`
    );
    const { groups, batch, inChannels, outChannels } = problem;
    const head = `g${groups}mb${batch}ic${inChannels}oc${outChannels}`;
    assert.equal([head, ...axes].join(" "), canonical);
    assert.deepEqual(parseDescriptor(printDescriptor(problem)), problem);
  });
}
