// <%= it.name %>: an operand in f32 as two halves each, <%= it.depthInner ? '[batch][place][depth] with the depth' : '[batch][depth][place] with both' %> padded: of every <%= it.unitDepth %> of its depth
// the high halves, then what they leave. Counts what is small and large of each place.
<%= it.declarations %>
<%= it.functions %>

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
  let product = value * <%= it.fine ? 'abs(factor)' : 'factor' %>;
  let size = bitcast<u32>(product) & 0x7fffffffu;
  let lost = size < 0x800000u && (bitcast<u32>(value) & 0x7fffffffu) != 0u;
<% if (it.fine) { -%>
  // What a high half would hold leaves a low one if it is asked for: with one bit more its high half is the next one.
  let held = factor < 0.0 && size != 0u && (size & 0x1fffu) == 0u;
  return select(select(product, bitcast<f32>(bitcast<u32>(product) | 1u), held), 0x1p-126f, lost);
<% } else { -%>
  return select(product, 0x1p-126f, lost);
<% } -%>
}

fn halves4(x: vec4f) -> vec2u {
  return bitcast<vec2u>(vec4<f16>(x));
}

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
<% if (it.clear !== '') { -%>
  for (var flag = id * 256u + t; flag < <%= it.flags %>; flag += <%= it.workgroups %> * 256u) {
    <%= it.clear %>
  }
<% } -%>
  let first_place = (id % <%= it.placeTiles %>) * 64u;
  let first_depth = (id / <%= it.placeTiles %>) % <%= it.depthTiles %> * 64u;
  let group = id / (<%= it.placeTiles %> * <%= it.depthTiles %>)<%= it.each < 64 ? ` * ${64 / it.each}u` : '' %>;
<% if (it.each === 64) { -%>
  let base = group * <%= it.batchStride %>;
<% } -%>
  if (t < 64u) {
    let largest = <%= it.firstLargest %> + group * <%= it.largestOfBatch %> + min(first_place + t, <%= it.places %> - 1u) * <%= it.largestOfPlace %>;
<% if (it.fine) { -%>
    let bits = <%= it.largest('largest') %>;
    let fine = <%= it.firstFine %> + group * <%= it.largestOfBatch %> + min(first_place + t, <%= it.places %> - 1u) * <%= it.largestOfPlace %>;
    // Negative where low halves are asked for.
    factors[t] = select(1.0f, -1.0f, (bits >> 23u) + <%= it.largest('fine') %> > <%= it.finer %>u) * split_factor(bits);
<% } else { -%>
    factors[t] = split_factor(<%= it.largest('largest') %>);
<% } -%>
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
<% if (it.each < 64) { -%>
    // Several batches lie in a tile one after the other.
    let deep = depth % <%= it.each %>u;
    let own = group + depth / <%= it.each %>u;
    let base = min(own, <%= it.batches %> - 1u) * <%= it.batchStride %>;
<% } else { -%>
    let deep = first_depth + depth;
<% } -%>
    let from_depth = min(deep, <%= it.depth %> - <%= along === 'depth' ? it.vector : 1 %>u);
    let inside = first_place + place < <%= it.places %> && deep < <%= it.depth %><%= it.each < 64 ? ` && own < ${it.batches}` : '' %>;
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
    var any = 0u;
    for (var d = 0u; d < 16u; d++) {
      let size = bitcast<u32>(tile[16u * (t / 64u) + d][place]) & 0x7fffffffu;
      few += select(0u, 4u, size != 0u && size < <%= it.smallBelow %>u);
      many += select(0u, 1u, size >= <%= it.largeFrom %>u);
      behind |= size & 0x1fffu;
      any |= size;
    }
    if (few > 0u) { atomicAdd(&small[place], few); }
    if (many > 0u) { atomicAdd(&large[place], many); }
    let said = select(0u, 1u, behind != 0u) | select(0u, 2u, any != 0u);
    if (said != 0u) { atomicOr(&small[place], said); }
  }
  workgroupBarrier();
  if (t < 64u && first_place + t < <%= it.places %>) {
    let few = atomicLoad(&small[t]);
    let many = atomicLoad(&large[t]);
    let to = <%= it.firstCount %> + group * <%= it.countsOfBatch %> + first_place + t;
    if (few > 3u) { <%= it.add('to', 'few & ~3u') %> }
    if ((few & 3u) != 0u) { <%= it.or('to', 'few & 3u') %> }
<% if (it.countKind !== '') { -%>
    if (many > 0u) { <%= it.add(`to + ${it.countKind}`, 'many') %> }
<% } -%>
  }
<% for (let i = 0; i < 2; i++) { -%>
<% const at = (k) => it.depthInner ? `tile[near + ${k}u][place]` : `tile[depth][near + ${k}u]`; -%>
  {
    // Eight neighbours along what lies innermost.
    let near = (t % 8u) * 8u;
<% if (it.depthInner) { -%>
    let place = t / 8u + <%= 32 * i %>u;
    let deep = first_depth + near;
<% } else { -%>
    let depth = t / 8u + <%= 32 * i %>u;
    let place = first_place + near;
<% if (it.each < 64) { -%>
    let deep = depth % <%= it.each %>u;
    let own = group + depth / <%= it.each %>u;
<% } else { -%>
    let deep = first_depth + depth;
<% } -%>
<% } -%>
    // Of each matrix's depth high halves come first.
    let row = deep / <%= it.unitDepth %>u * <%= 2 * it.unitDepth %>u + deep % <%= it.unitDepth %>u;
    if (<%= it.depthInner ? `first_place + place < ${it.places}` : `place < ${it.paddedPlaces}` %> && row < <%= it.paddedDepth %><%= it.each < 64 ? ` && own < ${it.batches}` : '' %>) {
      let left = vec4f(<%= [0, 1, 2, 3].map(at).join(', ') %>);
      let right = vec4f(<%= [4, 5, 6, 7].map(at).join(', ') %>);
      let left_high = high4(left);
      let right_high = high4(right);
<% if (it.depthInner) { -%>
      let to = ((group * <%= it.places %> + first_place + place) * <%= it.paddedDepth %> + row) / 8u;
      let to_low = to + <%= it.unitDepth / 8 %>u;
<% } else { -%>
      let to = ((<%= it.each < 64 ? 'own' : 'group' %> * <%= it.paddedDepth %> + row) * <%= it.paddedPlaces %> + place) / 8u;
      let to_low = to + <%= it.unitDepth %>u * <%= it.paddedPlaces %> / 8u;
<% } -%>
      <%= it.store('to', 'vec4u(halves4(left_high), halves4(right_high))') %>
      <%= it.store('to_low', 'vec4u(halves4(left - left_high), halves4(right - right_high))') %>
    }
  }
<% } -%>
}
