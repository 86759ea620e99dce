// <%= it.name %>: the largest size of the values of each key, as bits of an f32<%= it.finest ? ', and how fine they are' : '' %>.
<%= it.declarations %>

var<workgroup> most: array<atomic<u32>, <%= it.slots %>>;
<% if (it.finest) { -%>
var<workgroup> finest: array<atomic<u32>, <%= it.slots %>>;

// <%= it.fineBase %> less the biased exponent, and less the zeros behind the last bit that is set; 0 of zeros.
fn fineness(size: <%= it.bits %>) -> <%= it.bits %> {
  let last = countTrailingZeros((size & <%= it.bits %>(0x7fffffu)) | <%= it.bits %>(0x800000u));
  return select(<%= it.bits %>(<%= it.fineBase %>u) - (size >> <%= it.bits %>(23u)) - last, <%= it.bits %>(), size == <%= it.bits %>());
}
<% } -%>

fn place_of(e: u32) -> u32 {
  return <%= it.place %>;
}

fn size_of(bits: <%= it.bits %>) -> <%= it.bits %> {
  return bits & <%= it.bits %>(0x7fffffffu);
}

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  let first = id % <%= it.portions %> * <%= it.portion %>u;
  let end = min(first + <%= it.portion %>u, <%= it.rest %>);
  let block = id / <%= it.portions %>;
  let outer = block / <%= it.blocks %>;
  let near = t % <%= it.near %>u;
  let base = <%= it.base %>;
  if (t < <%= it.slots %>u) {
    atomicStore(&most[t], 0u);
<% if (it.finest) { -%>
    atomicStore(&finest[t], 0u);
<% } -%>
  }
  workgroupBarrier();

  // A value twice is no other maximum; infinities and NaN are above all others.
  var top = <%= it.bits %>();
<% if (it.finest) { -%>
  var fine = <%= it.bits %>();
<% } -%>
  for (var e = first + t / <%= it.near %>u; e < end; e += <%= 4 * it.lanes %>u) {
<% for (let i = 0; i < 4; i++) { -%>
    let x<%= i %> = size_of(bitcast<<%= it.bits %>>(<%= it.load(`base + place_of(min(e + ${i * it.lanes}u, end - 1u))`) %>));
<% } -%>
    top = max(top, max(max(x0, x1), max(x2, x3)));
<% if (it.finest) { -%>
    fine = max(fine, max(max(fineness(x0), fineness(x1)), max(fineness(x2), fineness(x3))));
<% } -%>
  }
<% for (const line of it.found) { -%>
  <%= line %>
<% } -%>
  workgroupBarrier();
  let key = block % <%= it.blocks %> * <%= it.slots %>u + t;
  if (t < <%= it.slots %>u && key < <%= it.keys %>) {
    <%= it.most %>
<% if (it.finest) { -%>
    <%= it.finest %>
<% } -%>
  }
}
