import assert from "#assert";
import { figuresOf, parsePipelines } from "./pipelines.ts";

/** Of an NVIDIA H200, driver 580.159.04; of a CPU without the extension; of RADV. */
const LINES = `\
{"kernel":"gemm_f32_128x64x16_nn_apb4_o4.1f","device":"NVIDIA H200","vendor":4318,"captured":true,"compile_ms":138.1,"cache":"2.cache.bin","executables":[{"name":"COMPUTE","subgroup":32,"statistics":{"Register Count":149,"Binary Size":19840,"Stack Size":0,"Local Memory Size":68719476848,"Shared Memory Size":12800,"Input Count":0}}]}
{"kernel":"direct","device":"llvmpipe (LLVM 15.0.6, 256 bits)","vendor":65541,"captured":false,"compile_ms":0.5}
{"kernel":"direct","device":"AMD RADV NAVI21","vendor":4098,"captured":true,"compile_ms":3.5,"executables":[{"name":"COMPUTE","subgroup":64,"statistics":{"VGPRs":84,"Spilled VGPRs":0,"Scratch size":0,"LDS size":8192,"Code size":4100,"Inverse Throughput":null}}]}
`;

Deno.test("the layer's lines are read by each driver's names, and 2^36 of NVIDIA's local memory is left out", () => {
  const [nvidia, cpu, amd] = parsePipelines(LINES);
  assert.deepEqual(figuresOf(nvidia!), {
    registers: 149,
    codeBytes: 19840,
    localBytes: 112,
    sharedBytes: 12800,
  });
  assert.deepEqual(figuresOf(cpu!), {});
  assert.deepEqual(figuresOf(amd!), {
    registers: 84,
    spilled: 0,
    localBytes: 0,
    sharedBytes: 8192,
    codeBytes: 4100,
  });
  assert.throws(() => parsePipelines(LINES + '{"kernel":"cut'), {
    name: "SyntaxError",
    message: 'Cannot read pipelines: line 4 is none: {"kernel":"cut',
  });
});
