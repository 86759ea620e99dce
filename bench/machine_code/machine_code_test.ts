import assert from "#assert";
import zlib from "node:zlib";
import { H200_LIMITS } from "../h200_limits.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { parseGemm } from "../../src/problem/gemm_suite.ts";
import { convKernels, gemmKernels } from "./kernels.ts";
import { codeObjects } from "./nvidia_cache.ts";
import { capabilityOf, occupancy } from "./occupancy.ts";
import { figuresOf, parsePipelines } from "./pipelines.ts";
import { readListing } from "./sass.ts";
import { codeTable, machineCode, spills } from "./table.ts";

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

Deno.test("occupancy is what CUDA's calculator says", () => {
  const kernel = (threads: number, registers: number, sharedBytes: number) => {
    const { workgroups, warps, limit } = occupancy(90, { threads, registers, sharedBytes });
    return [workgroups, warps, limit];
  };
  // gemm 128x64x16, implicit GEMM, fused Winograd and a transform of an H200, as the driver has them.
  assert.deepEqual(kernel(128, 149, 12800), [3, 12, "registers"]);
  assert.deepEqual(kernel(256, 181, 34816), [1, 8, "registers"]);
  assert.deepEqual(kernel(256, 128, 49152), [2, 16, "registers"]);
  assert.deepEqual(kernel(256, 32, 1088), [8, 64, "warps"]);
  assert.deepEqual(kernel(32, 32, 49152), [4, 4, "shared"]);
  assert.deepEqual(kernel(1, 16, 0), [32, 32, "workgroups"]);
  assert.throws(() => occupancy(10, { threads: 1, registers: 1, sharedBytes: 0 }), RangeError);
  const names = [
    "NVIDIA H200",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA GH200 480GB",
    "NVIDIA L4",
    "Tesla T4",
  ];
  assert.deepEqual(names.map(capabilityOf), [90, 90, 90, 89, 75]);
  assert.equal(capabilityOf("llvmpipe (LLVM 15.0.6, 256 bits)"), undefined);
});

const LISTING = `\
\t.headerflags\t@"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   S2UR UR8, SR_CTAID.X ;
        /*0010*/                   STS.128 [R0+0x2000], RZ ;
        /*0020*/               @P0 EXIT ;
        /*0030*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0040*/              @!P1 BRA 0xd0 ;
        /*0050*/                   LDS.128 R8, [R0] ;
        /*0060*/                   FFMA R16, R8, R12, R16 ;
        /*0070*/                   FFMA R17, R9, R12, R17 ;
        /*0080*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0090*/              @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*00a0*/               @P2 BRA 0x50 ;
        /*00b0*/                   FADD R16, R16, R17 ;
        /*00c0*/               @P3 BRA 0x30 ;
        /*00d0*/                   STG.E desc[UR4][R2.64], R16 ;
        /*00e0*/                   EXIT ;
        /*00f0*/                   BRA 0xf0;
        /*0100*/                   NOP;
`;

Deno.test("the loop of a listing is the smallest one with the products, by address or by label", () => {
  const { instructions, mix, loop } = readListing(LISTING);
  assert.equal(instructions, 16);
  assert.equal(mix.FFMA, 2);
  assert.equal(mix.BRA, 4);
  assert.deepEqual(loop, {
    instructions: 6,
    mix: { FFMA: 2, LDS: 1, BAR: 1, UIADD3: 1, BRA: 1 },
    branchedLoads: 0,
    lateLoads: 0,
    shortest: { instructions: 6, mix: { FFMA: 2, LDS: 1, BAR: 1, UIADD3: 1, BRA: 1 } },
  });
  const labelled = LISTING.replace("        /*0050*/", ".L_x_1:\n        /*0050*/")
    .replace("BRA 0x50 ", "BRA `(.L_x_1) ");
  assert.deepEqual(readListing(labelled).loop, loop);
  assert.equal(readListing(LISTING.replace(/FFMA/g, "FMNMX")).loop, undefined);
});

/** Lines of machine code as nvdisasm lists them. */
function listed(lines: readonly string[]): string {
  return lines.map((line, i) =>
    `        /*${(16 * i).toString(16).padStart(4, "0")}*/                   ${line} ;`
  ).join("\n");
}

Deno.test("loads of a loop's branches are counted, not what jumps over products or barriers skip", () => {
  const lines = [
    "LDG.E.128 R4, desc[UR4][R2.64]",
    "@P1 BRA 0x50",
    "LDG.E.128 R4, desc[UR4][R2.64]",
    "@P2 BRA 0x50",
    "STS.128 [R0], R4",
    "@P3 BRA 0x80",
    "LDG.E.128 R8, desc[UR4][R2.64]",
    "FFMA R16, R8, R12, R16",
    "BAR.SYNC.DEFER_BLOCKING 0x0",
    "@P5 BRA 0xc0",
    "LDG.E.128 R8, desc[UR4][R2.64]",
    "@P4 BRA 0x0",
    "EXIT",
  ];
  assert.equal(readListing(listed(lines)).loop!.branchedLoads, 1);
});

Deno.test("the shortest way through a loop takes one side of each branch", () => {
  const lines = [
    "LDS.128 R4, [R0]",
    "@P1 BRA 0x50",
    "FADD R4, R4, R5",
    "FADD R4, R4, R5",
    "BRA 0x70",
    "FSEL R4, R4, RZ, P0",
    "FADD R4, R4, R5",
    "@!P3 EXIT",
    "BRA.U !UP0, 0xb0",
    "LDG.E.128 R8, desc[UR4][R2.64]",
    "STS.128 [R0], R8",
    "FFMA R16, R8, R12, R16",
    "BRA 0x0",
    "EXIT",
  ];
  const { instructions, shortest } = readListing(listed(lines)).loop!;
  assert.equal(instructions, 13);
  assert.deepEqual(shortest, {
    instructions: 8,
    mix: { BRA: 3, LDS: 1, FSEL: 1, FADD: 1, EXIT: 1, FFMA: 1 },
  });
});

Deno.test("loads of a loop that are stored before products could hide them are late", () => {
  const load = "LDG.E.128 R4, desc[UR4][R2.64]", product = "HMMA.16816.F32 R8, R12, R16, R8";
  const barrier = "BAR.SYNC.DEFER_BLOCKING 0x0";
  const step = (early: number, late: number) => [
    ...Array(early).fill(load),
    ...Array(16).fill(product),
    barrier,
    ...Array(late).fill(load),
    "STS.128 [R0], R4",
    barrier,
  ];
  const lines = [...step(3, 1), ...step(2, 2)];
  const listing = listed([...lines, "@P4 BRA 0x0", "EXIT"]);
  assert.equal(readListing(listing).loop!.lateLoads, 3);
  // What the end of the loop loads its beginning stores.
  const turned = [...lines.slice(-2), ...lines.slice(0, -2)];
  assert.equal(readListing(listed([...turned, "@P4 BRA 0x0", "EXIT"])).loop!.lateLoads, 3);
});

/** An object of NVIDIA's driver with a section of type 3 and its code, as its cache holds it. */
function driverObject(code: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(96 + 128 + code.length + 7);
  const at = new DataView(bytes.buffer);
  at.setUint32(0, 0x6375564e, true);
  at.setUint16(8, 2, true);
  [[3, 128, 96], [1, code.length + 7, 224]].forEach((section, i) =>
    section.forEach((value, k) => at.setUint32(32 + 32 * i + 4 * k, value, true))
  );
  bytes.set(code, 224);
  return bytes;
}

Deno.test("code is found in a cache, bare or packed, whole instructions of it", () => {
  const code = new Uint8Array(256).map((_, i) => i);
  const object = driverObject(code);
  const around = (inner: Uint8Array) => new Uint8Array([...new Uint8Array(100), ...inner, 1, 2, 3]);
  const caches = [object, zlib.deflateSync(object), zlib.zstdCompressSync(object)].map(around);
  for (const cache of caches) {
    const found = codeObjects(cache);
    assert.deepEqual(found.map(({ kind, data }) => [kind, data.length]), [["code", 256], [
      "code",
      128,
    ]]);
    assert.deepEqual(found[0]!.data, code);
  }
  assert.deepEqual(codeObjects(new Uint8Array(1000)), []);
  assert.deepEqual(
    codeObjects(around(new TextEncoder().encode("\x7fELF and no more ".repeat(9)))),
    [],
  );
});

const planning = { limits: H200_LIMITS };
const asked = {
  problems: [parseDescriptor("mb32ic64ih56oc64oh56kh3ph1")],
  ops: ["fwd", "bwd-data"],
  layouts: ["nhwc"],
  dtypes: ["f32"],
} as const;

Deno.test("kernels of plans are listed once, with the plans that run them and whether auto may", () => {
  const own = [
    ...convKernels({ ...asked, algorithms: ["auto", "auto"] }, planning).kernels.values(),
  ];
  assert.ok(own.some(({ products }) => products) && own.some(({ products }) => !products));
  assert.ok(own.every(({ auto, plans }) => auto && plans >= 2));
  const rivals = convKernels({ ...asked, algorithms: ["rivals"] }, planning).kernels;
  assert.ok(rivals.size > own.length && own.every(({ kernel }) => rivals.has(kernel.name)));
  const forced = convKernels({
    ...asked,
    algorithms: ["implicit-gemm", "winrs"],
  }, { ...planning, schedule: { policy: "small" } });
  assert.ok([...forced.kernels.values()].every(({ auto }) => !auto));
  assert.equal([...forced.refused.values()].reduce((sum, count) => sum + count), 2);
  const product = gemmKernels([parseGemm("512 512 512")], ["f32"], planning).kernels;
  assert.ok([...product.values()].every(({ auto }) => auto));
});

Deno.test("the table has a row a kernel, and says which spill", () => {
  const [one] = [...gemmKernels([parseGemm("512 512 512")], ["f32"], planning).kernels.values()]
    .filter(({ products }) => products);
  const [line] = parsePipelines(LINES);
  const row = machineCode(one!, line!, 90, readListing(LISTING));
  assert.ok(spills(row));
  assert.ok(!spills({ ...row, figures: { localBytes: 0 } }));
  assert.ok(
    spills({ ...row, figures: {}, code: { instructions: 2, mix: { LDL: 1, STL: 1 } } }),
  );
  const other = { ...row, kernel: row.kernel.replace(/\.\w+$/, ".01234567"), plans: 4 };
  const [heading, cells, ...more] = codeTable([row, other]).split("\n")
    .map((text) => text.split(/ {2,}/));
  assert.equal(more.length, 0);
  assert.equal(cells![heading!.indexOf("plans")], "5");
  assert.deepEqual(heading!.slice(1, 8), [
    "auto",
    "plans",
    "threads",
    "registers",
    "local",
    "shared",
    "warps/SM",
  ]);
  assert.equal(cells![heading!.indexOf("local")], "112 spills");
  assert.equal(cells![heading!.indexOf("products")], "33 %");
  assert.equal(cells![heading!.indexOf("LDS")], "1");
  assert.ok(!heading!.includes("LDSM"));
});
