// A matrix product: a thread computes one result.
override M: u32;
override N: u32;
override K: u32;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= N || id.y >= M) {
    return;
  }
  var sum = 0.0;
  for (var k = 0u; k < K; k++) {
    sum += a[(id.z * M + id.y) * K + k] * b[(id.z * K + k) * N + id.x];
  }
  c[(id.z * M + id.y) * N + id.x] = sum;
}
