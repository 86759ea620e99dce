// A convolution of two axes, nchw, as a matrix product without a copy of the input (implicit GEMM): a workgroup computes
// 32 channels of 32 places from tiles in workgroup memory, a thread 4 channels of one place.
override IC: u32;
override IH: u32;
override IW: u32;
override OC: u32;
override OH: u32;
override OW: u32;
override KH: u32;
override KW: u32;
override SH: u32;
override SW: u32;
override PH: u32;
override PW: u32;
override DH: u32;
override DW: u32;
// Products of an output: IC * KH * KW.
override DEPTH: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const TILE = 32u;
const STEP = 8u;
var<workgroup> pixels: array<f32, 256>;
var<workgroup> taps: array<f32, 256>;

// The input that tap `d` of an output meets; 0 in the padding.
fn pixel(n: u32, place: u32, d: u32) -> f32 {
  let row = i32(place / OW * SH + d / KW % KH * DH) - i32(PH);
  let column = i32(place % OW * SW + d % KW * DW) - i32(PW);
  if (place >= OH * OW || d >= DEPTH || row < 0 || row >= i32(IH) || column < 0 || column >= i32(IW)) {
    return 0.0;
  }
  return x[((n * IC + d / (KW * KH)) * IH + u32(row)) * IW + u32(column)];
}

@compute @workgroup_size(32, 8)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_id) local: vec3u,
) {
  let place = group.x * TILE + local.x;
  let first = group.y * TILE;
  var sums = vec4f();
  for (var step = 0u; step < DEPTH; step += STEP) {
    pixels[local.y * TILE + local.x] = pixel(group.z, place, step + local.y);
    let k = first + local.x;
    let d = step + local.y;
    taps[local.y * TILE + local.x] = select(0.0, w[min(k * DEPTH + d, OC * DEPTH - 1)], k < OC && d < DEPTH);
    workgroupBarrier();
    for (var i = 0u; i < STEP; i++) {
      let at = i * TILE + local.y * 4;
      let four = vec4f(taps[at], taps[at + 1], taps[at + 2], taps[at + 3]);
      sums += pixels[i * TILE + local.x] * four;
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < 4; i++) {
    let k = first + local.y * 4 + i;
    if (place < OH * OW && k < OC) {
      y[(group.z * OC + k) * OH * OW + place] = sums[i];
    }
  }
}
