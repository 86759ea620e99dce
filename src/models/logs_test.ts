import assert from "#assert";
import { MIOPEN_LOG, ONEDNN_LOG } from "../../tests/support/layer_logs.ts";
import { type Layer, layerSizes, type ModelLayers } from "./layer.ts";
import { miopenLayers, onednnLayers } from "./logs.ts";
import { suiteText } from "./read_model.ts";

const lines = ({ layers }: ModelLayers) =>
  layers.map((layer: Layer) => [layer.name, layerSizes(layer), layer.ops.join(), layer.dtype]);

Deno.test("lines of ONEDNN_VERBOSE are layers, in all their forms", () => {
  const found = onednnLayers(ONEDNN_LOG);
  assert.deepEqual(lines(found), [
    ["convolution_1", "mb1ic3ih224oc64oh112kh7sh2ph3", "fwd", "f32"],
    ["convolution_2", "g32mb2ic32ih14oc32oh14kh3ph2dh1", "bwd-filter", "f16"],
    ["deconvolution_1", "mb1ic32ih32oc64oh16kh2sh2", "bwd-data", "i8"],
    ["matmul_1", "128 32 64 n t x8", "", "f32"],
    ["matmul_2", "1024 32 64", "", "f32"],
    ["inner_product_1", "8 1000 25088 n t", "", "bf16"],
  ]);
  assert.deepEqual(found.layers[0]!.follows, ["bias", "relu"]);
  assert.equal(found.layers[5]!.said, undefined);
  assert.deepEqual(found.left, [{ name: "convolution_3", why: "its direction is backward" }]);
});

Deno.test("commands of MIOpenDriver are layers", () => {
  const found = miopenLayers(MIOPEN_LOG);
  assert.deepEqual(lines(found), [
    ["convfp16_1", "mb128ic3ih224oc64oh112kh7sh2ph3", "fwd", "f16"],
    ["conv_2", "g4mb4ic8ih9oc16oh7kh3", "bwd-data,bwd-filter", "f32"],
    ["conv_3", "mb1ic8ih13oc16oh7kh3sh2ph1", "bwd-data", "f32"],
    ["conv_4", "mb2ic3id8oc4od6kd3", "fwd", "f32"],
  ]);
  assert.deepEqual(found.left, [{ name: "pool_5", why: "it is no convolution" }]);
});

Deno.test("suiteText() says each size once, with its count and all names", () => {
  const { layers } = onednnLayers(ONEDNN_LOG);
  const stem = layers[0]!;
  const twice = [stem, { ...stem, name: 'other "name"#1*7' }, layers[2]!, layers[3]!];
  assert.equal(
    suiteText(twice, { title: "Layers of a_b", network: "a_b" }),
    `# Layers of a_b: 4 layers of 3 sizes
# convolution_1 +bias +relu, other "name"#1*7 +bias +relu
mb1ic3ih224oc64oh112kh7sh2ph3n"a-b_convolution_1*2"
--dir=BWD_D
--dt=s8
mb1ic32ih32oc64oh16kh2sh2n"a-b_deconvolution_1"
--dt=f32
128 32 64 n t x8 n"a-b_matmul_1"
`,
  );
  assert.match(suiteText(twice.slice(1), { title: "t", network: "n" }), /n"n_other--name--1-7"/);
});
