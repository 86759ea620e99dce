// <%= it.name %>: powers of two that bring rows to where two halves hold most of f32, and what they hold less of.
<%= it.declarations %>

// Of the eight places of a workgroup: largest bits, small values, large values.
var<workgroup> most: array<atomic<u32>, 8>;
var<workgroup> small: array<atomic<u32>, 8>;
var<workgroup> large: array<atomic<u32>, 8>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
<% if (it.clear !== '') { -%>
  for (var flag = id * 256u + t; flag < <%= it.flags %>; flag += <%= it.workgroups %> * 256u) {
    <%= it.clear %>
  }
<% } -%>
  let near = <%= it.near %>;
  let lane = <%= it.lane %>;
  let group = id / <%= it.groupWorkgroups %>;
  let place = id % <%= it.groupWorkgroups %> * 8u + near;
  let base = group * <%= it.batchStride %> + min(place, <%= it.places %> - 1u) * <%= it.placeStride %>;
  if (t < 8u) {
    atomicStore(&most[t], 0u);
    atomicStore(&small[t], 0u);
    atomicStore(&large[t], 0u);
  }
  workgroupBarrier();

  // A value twice is no other maximum.
  let last = <%= it.depth %> - 1u;
  var top = 0u;
  for (var d = lane; d < <%= it.depth %>; d += 128u) {
<% for (let i = 0; i < 4; i++) { -%>
    let x<%= i %> = bitcast<u32>(<%= it.load(`base + min(d + ${32 * i}u, last) * ${it.depthStride}`) %>) & 0x7fffffffu;
<% } -%>
    top = max(top, max(max(x0, x1), max(x2, x3)));
  }
  atomicMax(&most[near], top);
  workgroupBarrier();
  top = atomicLoad(&most[near]);
  let exponent = top >> 23u;

  var few = 0u;
  var many = 0u;
  for (var d = lane; d < <%= it.depth %>; d += 128u) {
<% for (let i = 0; i < 4; i++) { -%>
    let x<%= i %> = bitcast<u32>(<%= it.load(`base + min(d + ${32 * i}u, last) * ${it.depthStride}`) %>) & 0x7fffffffu;
    let counts<%= i %> = x<%= i %> != 0u && d + <%= 32 * i %>u <= last;
    few += select(0u, 1u, counts<%= i %> && (x<%= i %> >> 23u) + <%= it.smallBits %>u < exponent);
    many += select(0u, 1u, counts<%= i %> && (x<%= i %> >> 23u) + <%= it.largeBits %>u >= exponent);
<% } -%>
  }
  atomicAdd(&small[near], few);
  atomicAdd(&large[near], many);
  workgroupBarrier();
  if (lane > 0u || place >= <%= it.places %>) { return; }
  let smalls = i32(atomicLoad(&small[near]));
  let larges = i32(atomicLoad(&large[near]));
  var scale = vec4<i32>(i32(exponent) - <%= 127 + it.top %>, smalls, <%= it.weight %> * larges - smalls, bitcast<i32>((<%= 254 + it.top %>u - exponent) << 23u));
  if (exponent == 255u || (top != 0u && exponent < <%= it.least %>u)) {
    scale = vec4<i32>(0, <%= it.beyond %>, -<%= it.beyond %>, 0x3f800000);
  } else if (top == 0u) {
    scale = vec4<i32>(0, 0, <%= it.beyond %>, 0x3f800000);
  }
  <%= it.store(`${it.first} + group * ${it.places} + place`, 'scale') %>
}
