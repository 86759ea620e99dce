import assert from "#assert";
import { isInputError } from "../errors.ts";
import { mutated } from "../../tests/support/mutations.ts";
import { type Layer, layerSizes, type ModelLayers } from "./layer.ts";
import { miopenLayers } from "./miopen_log.ts";
import { onednnLayers } from "./onednn_log.ts";
import { suiteText } from "./suite_text.ts";

const ONEDNN = `onednn_verbose,info,oneDNN v3.1.0 (commit 7f5d6e2)
onednn_verbose,primitive,create:cache_hit,cpu,convolution,jit:avx2,forward_training,,,,mb1ic3ih8oc4kh3,0.1
onednn_verbose,primitive,exec,cpu,convolution,jit:avx2,forward_training,src_f32::blocked:abcd::f0 wei_f32::blocked:Acdb16a::f0 bia_f32::blocked:a::f0 dst_f32::blocked:acdb::f0,attr-scratchpad:user attr-post-ops:eltwise_relu,alg:convolution_direct,mb1_ic3oc64_ih224oh112kh7sh2dh0ph3_iw224ow112kw7sw2dw0pw3,0.5
onednn_verbose,primitive,exec,cpu,reorder,jit:uni,undef,src_f32::blocked:abcd::f0 dst_f32::blocked:acdb::f0,,,1x64x112x112,0.1
onednn_verbose,v1,primitive,exec,cpu,convolution,jit,backward_weights,src:f16::blocked:abcd::f0 wei:f16:a:blocked:Acdb16a::f0,,alg:convolution_direct,g32mb2_ic32oc32_ih14oh14kh3sh1dh1ph2_iw14ow14kw3sw1dw1pw2,0.5
dnnl_verbose,exec,cpu,deconvolution,jit,forward_inference,src_s8::blocked:abcd::f0 wei_s8::blocked:Acdb16a::f0,,alg:deconvolution_direct,mb1_ic64oc32_ih16oh32kh2sh2dh0ph0_iw16ow32kw2sw2dw0pw0,0.5
onednn_verbose,primitive,exec,cpu,matmul,brg,undef,src_f32::blocked:abc::f0 wei_f32::blocked:acb::f0 dst_f32::blocked:abc::f0,,,8x128x64:8x64x32,0.1
onednn_verbose,primitive,exec,cpu,matmul,brg,undef,src_f32::blocked:abc::f0 wei_f32::blocked:abc::f0 dst_f32::blocked:abc::f0,,,8x128x64:1x64x32:8x128x32,0.1
onednn_verbose,primitive,exec,cpu,inner_product,brg,forward_inference,src_bf16::blocked:ab::f0 wei_bf16::blocked:ab::f0 dst_bf16,,,mb8ic512ih7iw7oc1000,0.1
onednn_verbose,primitive,exec,cpu,convolution,jit,backward,src_f32,,,mb1ic3ih8oc4kh3,0.1
`;

const MIOPEN =
  `MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver convfp16 -n 128 -c 3 -H 224 -W 224 -k 64 -y 7 -x 7 -p 3 -q 3 -u 2 -v 2 -l 1 -j 1 -m conv -g 1 -F 1 -t 1
./bin/MIOpenDriver conv --batchsize 4 --in_channels 8 --in_h 9 --in_w 9 --out_channels 16 --fil_h 3 --fil_w 3 --group_count 4 -F 6
MIOpenDriver conv -n 1 -c 16 -H 7 -W 7 -k 8 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -m trans -F 1
MIOpenDriver conv -n 2 -c 3 -! 8 -H 8 -W 8 -k 4 -@ 3 -y 3 -x 3 -_ 3 -F 1
MIOpenDriver pool -n 1 -c 3
`;

const lines = ({ layers }: ModelLayers) =>
  layers.map((layer: Layer) => [layer.name, layerSizes(layer), layer.ops.join(), layer.dtype]);

Deno.test("lines of ONEDNN_VERBOSE are layers, in all their forms", () => {
  const found = onednnLayers(ONEDNN);
  assert.deepEqual(lines(found), [
    ["convolution_1", "mb1ic3ih224oc64oh112kh7sh2ph3", "fwd", "f32"],
    ["convolution_2", "g32mb2ic32ih14oc32oh14kh3ph2dh1", "bwd-filter", "f16"],
    ["deconvolution_1", "mb1ic32ih32oc64oh16kh2sh2", "bwd-data", "i8"],
    ["matmul_1", "128 32 64 n t x8", "", "f32"],
    ["matmul_2", "1024 32 64", "", "f32"],
    ["inner_product_1", "8 1000 25088 n t", "", "f32"],
  ]);
  assert.deepEqual(found.layers[0]!.follows, ["bias", "relu"]);
  assert.equal(found.layers[5]!.said, "bf16");
  assert.deepEqual(found.left, [{ name: "convolution_3", why: "its direction is backward" }]);
});

Deno.test("commands of MIOpenDriver are layers", () => {
  const found = miopenLayers(MIOPEN);
  assert.deepEqual(lines(found), [
    ["convfp16_1", "mb128ic3ih224oc64oh112kh7sh2ph3", "fwd", "f16"],
    ["conv_2", "g4mb4ic8ih9oc16oh7kh3", "bwd-data,bwd-filter", "f32"],
    ["conv_3", "mb1ic8ih13oc16oh7kh3sh2ph1", "bwd-data", "f32"],
    ["conv_4", "mb2ic3id8oc4od6kd3", "fwd", "f32"],
  ]);
  assert.deepEqual(found.left, [{ name: "pool_5", why: "it is no convolution" }]);
});

Deno.test("500 damaged logs are read, or refused by a sentence", () => {
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  for (let seed = 1; seed <= 500; seed++) {
    for (const [text, read] of [[ONEDNN, onednnLayers], [MIOPEN, miopenLayers]] as const) {
      try {
        read(decoder.decode(mutated(encoder.encode(text), seed)));
      } catch (error) {
        assert.ok(isInputError(error), `seed ${seed}: ${error}`);
      }
    }
  }
});

Deno.test("suiteText() says each size once, with its count and all names", () => {
  const { layers } = onednnLayers(ONEDNN);
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
