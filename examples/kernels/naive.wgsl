// A convolution of two axes, nchw: a thread computes one output.
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

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let place = id.x;
  let k = id.y;
  let n = id.z;
  if (place >= OH * OW) {
    return;
  }
  let top = i32(place / OW * SH) - i32(PH);
  let left = i32(place % OW * SW) - i32(PW);
  var sum = 0.0;
  for (var c = 0u; c < IC; c++) {
    for (var r = 0u; r < KH; r++) {
      let row = top + i32(r * DH);
      if (row < 0 || row >= i32(IH)) {
        continue;
      }
      for (var s = 0u; s < KW; s++) {
        let column = left + i32(s * DW);
        if (column < 0 || column >= i32(IW)) {
          continue;
        }
        let pixel = ((n * IC + c) * IH + u32(row)) * IW + u32(column);
        sum += x[pixel] * w[((k * IC + c) * KH + r) * KW + s];
      }
    }
  }
  y[(n * OC + k) * OH * OW + place] = sum;
}
