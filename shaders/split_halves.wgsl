// <%= it.name %>: an operand in f32 as two halves each, [batch][depth][place] with both padded: of every <%= it.unitDepth %> of its depth
// the high halves, then what they leave.
<%= it.declarations %>

var<workgroup> tile: array<array<f32, 65>, 64>;

// 11 bits of each, rounded, by whole numbers, since compilers take x - f32(f16(x)) for 0. What they leave has 13 bits and a sign,
// of which low halves keep 11.
fn high4(x: vec4f) -> vec4f {
  return bitcast<vec4f>((bitcast<vec4u>(x) + vec4u(0x1000u)) & vec4u(0xffffe000u));
}

fn halves4(x: vec4f) -> vec2u {
  return bitcast<vec2u>(vec4<f16>(x));
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  let first_place = (id % <%= it.placeTiles %>) * 64u;
  let first_depth = (id / <%= it.placeTiles %>) % <%= it.depthTiles %> * 64u;
  let group = id / (<%= it.placeTiles %> * <%= it.depthTiles %>);
  let base = group * <%= it.batchStride %>;
  let scale = <%= it.first %> + group * <%= it.places %>;
<% for (let i = 0; i < 64; i += 4) { -%>
  {
    let place = <%= it.along === 'place' ? 't % 64u' : `t / 64u + ${i}u` %>;
    let depth = <%= it.along === 'place' ? `t / 64u + ${i}u` : 't % 64u' %>;
    let from_place = min(first_place + place, <%= it.places %> - 1u);
    let from_depth = min(first_depth + depth, <%= it.depth %> - 1u);
    let inside = first_place + place < <%= it.places %> && first_depth + depth < <%= it.depth %>;
    let value = <%= it.load('base + from_place * ' + it.placeStride + ' + from_depth * ' + it.depthStride) %>;
    let factor = bitcast<f32>(<%= it.factor('scale + from_place') %>.w);
    tile[depth][place] = select(0.0, value * factor, inside);
  }
<% } -%>
  workgroupBarrier();
<% for (let i = 0; i < 2; i++) { -%>
  {
    let near = (t % 8u) * 8u;
    let depth = t / 8u + <%= 32 * i %>u;
    let place = first_place + near;
    let deep = first_depth + depth;
    // Of each matrix's depth high halves come first.
    let row = deep / <%= it.unitDepth %>u * <%= 2 * it.unitDepth %>u + deep % <%= it.unitDepth %>u;
    if (place < <%= it.paddedPlaces %> && row < <%= it.paddedDepth %>) {
      let left = vec4f(tile[depth][near], tile[depth][near + 1u], tile[depth][near + 2u], tile[depth][near + 3u]);
      let right = vec4f(tile[depth][near + 4u], tile[depth][near + 5u], tile[depth][near + 6u], tile[depth][near + 7u]);
      let left_high = high4(left);
      let right_high = high4(right);
      let to = ((group * <%= it.paddedDepth %> + row) * <%= it.paddedPlaces %> + place) / 8u;
      let to_low = to + <%= it.unitDepth %>u * <%= it.paddedPlaces %> / 8u;
      <%= it.store('to', 'vec4u(halves4(left_high), halves4(right_high))') %>
      <%= it.store('to_low', 'vec4u(halves4(left - left_high), halves4(right - right_high))') %>
    }
  }
<% } -%>
}
