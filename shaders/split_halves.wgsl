// <%= it.name %>: an operand in f32 as two halves each, [batch][depth][place] with both padded: of every <%= it.unitDepth %> of its depth
// the high halves, then what they leave. Counts what is small and large of each place.
<%= it.declarations %>

var<workgroup> tile: array<array<f32, 65>, 64>;
var<workgroup> factors: array<f32, 64>;
var<workgroup> small: array<atomic<u32>, 64>;
var<workgroup> large: array<atomic<u32>, 64>;

// 11 bits of each, rounded, by whole numbers, since compilers take x - f32(f16(x)) for 0. What they leave has 13 bits and a sign,
// of which low halves keep 11.
fn high4(x: vec4f) -> vec4f {
  return bitcast<vec4f>((bitcast<vec4u>(x) + vec4u(<%= it.rounding %>)) & vec4u(0xffffe000u));
}

// What underflows as it is scaled is nothing in halves, but counts: the least number that is normal.
fn scaled(value: f32, factor: f32) -> f32 {
  let product = value * factor;
  let size = bitcast<u32>(product) & 0x7fffffffu;
  let lost = size < 0x800000u && (bitcast<u32>(value) & 0x7fffffffu) != 0u;
  return select(product, 0x1p-126f, lost);
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
<% if (it.clear !== '') { -%>
  for (var flag = id * 256u + t; flag < <%= it.flags %>; flag += <%= it.workgroups %> * 256u) {
    <%= it.clear %>
  }
<% } -%>
  let first_place = (id % <%= it.placeTiles %>) * 64u;
  let first_depth = (id / <%= it.placeTiles %>) % <%= it.depthTiles %> * 64u;
  let group = id / (<%= it.placeTiles %> * <%= it.depthTiles %>);
  let base = group * <%= it.batchStride %>;
  let marked = <%= it.first %> + group * <%= it.places %>;
  if (t < 64u) {
    factors[t] = split_factor(<%= it.largest(`marked + min(first_place + t, ${it.places} - 1u)`) %>);
    atomicStore(&small[t], 0u);
    atomicStore(&large[t], 0u);
  }
  workgroupBarrier();
<% for (let i = 0; i < 64; i += 4 * it.vector) { -%>
<% const [along, across] = it.along === 'place' ? ['place', 'depth'] : ['depth', 'place']; -%>
  {
    let <%= along %> = t % <%= 64 / it.vector %>u * <%= it.vector %>u;
    let <%= across %> = t / <%= 64 / it.vector %>u + <%= i %>u;
    let from_place = min(first_place + place, <%= it.places %> - <%= along === 'place' ? it.vector : 1 %>u);
    let from_depth = min(first_depth + depth, <%= it.depth %> - <%= along === 'depth' ? it.vector : 1 %>u);
    let inside = first_place + place < <%= it.places %> && first_depth + depth < <%= it.depth %>;
    let value = <%= it.load(`(base + from_place * ${it.placeStride} + from_depth * ${it.depthStride}) / ${it.vector}u`) %>;
<% for (let k = 0; k < it.vector; k++) { -%>
    tile[depth<%= along === 'depth' && k > 0 ? ` + ${k}u` : '' %>][place<%= along === 'place' && k > 0 ? ` + ${k}u` : '' %>] = select(0.0, scaled(value<%= it.vector > 1 ? `[${k}]` : '' %>, factors[place<%= along === 'place' && k > 0 ? ` + ${k}u` : '' %>]), inside);
<% } -%>
  }
<% } -%>
  workgroupBarrier();
  {
    let place = t % 64u;
    var few = 0u;
    var many = 0u;
    var behind = 0u;
    for (var d = 0u; d < 16u; d++) {
      let size = bitcast<u32>(tile[16u * (t / 64u) + d][place]) & 0x7fffffffu;
      few += select(0u, 2u, size != 0u && size < <%= it.smallBelow %>u);
      many += select(0u, 1u, size >= <%= it.largeFrom %>u);
      behind |= size & 0x1fffu;
    }
    if (few > 0u) { atomicAdd(&small[place], few); }
    if (many > 0u) { atomicAdd(&large[place], many); }
    if (behind != 0u) { atomicOr(&small[place], 1u); }
  }
  workgroupBarrier();
  if (t < 64u && first_place + t < <%= it.places %>) {
    let few = atomicLoad(&small[t]);
    let many = atomicLoad(&large[t]);
    let to = marked + first_place + t + <%= it.marked %>;
    if (few > 1u) { <%= it.add('to', 'few & ~1u') %> }
    if ((few & 1u) != 0u) { <%= it.or('to', '1u') %> }
    if (many > 0u) { <%= it.add(`to + ${it.marked}`, 'many') %> }
  }
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
