// <%= it.name %>: results of groups that have a flag, summed in f32 as they are: <%= it.lanes %> threads share the products of each.
<%= it.declarations %>
<%= it.functions %>

var<workgroup> count: atomic<u32>;
var<workgroup> all: u32;
var<workgroup> listed: array<u32, <%= 32 * it.wordsEach %>>;
var<workgroup> shares: array<f32, <%= it.threads %>>;

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  if (t == 0u) { atomicStore(&count, 0u); }
  workgroupBarrier();
  let own = id * <%= it.wordsEach %>u + t;
  if (t < <%= it.wordsEach %>u && own < <%= it.words %>) {
    var flags = <%= it.flags('own') %>;
    while (flags != 0u) {
      listed[atomicAdd(&count, 1u)] = 32u * own + firstTrailingBit(flags);
      flags &= flags - 1u;
    }
  }
  workgroupBarrier();
  if (t == 0u) { all = atomicLoad(&count); }
  let flagged = workgroupUniformLoad(&all);
  let lane = t % <%= it.lanes %>u;
  for (var d = 0u; d < flagged; d++) {
    let mine = listed[d] * <%= it.results %>u + t / <%= it.lanes %>u;
    // What lies beyond the last result is that again, and not stored.
    let i = min(mine, <%= it.elements %> - 1u);
<%= it.coordinates %>
<% for (let k = 0; k < it.unrolled; k++) { -%>
    var share<%= k %> = 0.0f;
<% } -%>
    // Without branches, so that loads of several products are under way at once.
    for (var first = lane; first < <%= it.terms %>; first += <%= it.unrolled * it.lanes %>u) {
<% for (let k = 0; k < it.unrolled; k++) { -%>
      {
        let term = first + <%= k * it.lanes %>u;
<%= it.term %>
        let there = inside && term < <%= it.terms %>;
        let left = select(0.0f, <%= it.a %>, there);
        share<%= k %> = fma(left, select(0.0f, <%= it.b %>, there), share<%= k %>);
      }
<% } -%>
    }
    shares[t] = <%= Array.from({ length: it.unrolled }, (_, k) => `share${k}`).join(' + ') %>;
    workgroupBarrier();
    for (var half = <%= it.lanes / 2 %>u; half > 0u; half /= 2u) {
      if (lane < half) { shares[t] += shares[t + half]; }
      workgroupBarrier();
    }
    if (lane == 0u && mine == i) {
      let sum = shares[t];
      <%= it.store %>
    }
    workgroupBarrier();
  }
}
