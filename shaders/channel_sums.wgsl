// <%= it.name %>: sums a gradient over all places of each channel, compensated (Kahan).
<%= it.declarations %>
<%= it.compensation %>

var<workgroup> lane_sums: array<<%= it.type %>, 256>;
var<workgroup> lane_losts: array<<%= it.type %>, 256>;

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  let segment = id / <%= it.blocks %>;
  if (segment >= <%= it.segments %>) { return; }
  // Of the workgroup's threads neighbours take neighbouring channels, or (across = 1) neighbouring places of one.
  let channel = id % <%= it.blocks %> * <%= it.across %>u + t % <%= it.across %>u;
  let end = min((segment + 1u) * <%= it.perSegment %>, <%= it.places %>);
  var sum = <%= it.none %>;
  var lost = sum;
  if (channel < <%= it.channels %>) {
    // Four loads are on their way at once; those beyond the segment add nothing.
    for (var first = segment * <%= it.perSegment %> + t / <%= it.across %>u; first < end; first += <%= 4 * it.along %>u) {
<% for (let k = 0; k < 4; k++) { -%>
      let place<%= k %> = min(first + <%= k * it.along %>u, end - 1u);
      let part<%= k %> = <%= it.load(`place${k}`) %>;
<% } -%>
<% for (let k = 0; k < 4; k++) { -%>
<%   const part = k === 0 ? 'part0' : `select(${it.none}, part${k}, first + ${k * it.along}u < end)` -%>
      let term<%= k %> = <%= part %> - lost;
      let next<%= k %> = sum + term<%= k %>;
      lost = lost_of(sum, term<%= k %>, next<%= k %>);
      sum = next<%= k %>;
<% } -%>
    }
  }
  lane_sums[t] = sum;
  lane_losts[t] = lost;
  for (var half = <%= it.along / 2 %>u * <%= it.across %>u; half >= <%= it.across %>u; half /= 2u) {
    workgroupBarrier();
    if (t < half) {
      let term = lane_sums[t + half] - (lane_losts[t] + lane_losts[t + half]);
      let next = lane_sums[t] + term;
      lane_losts[t] = lost_of(lane_sums[t], term, next);
      lane_sums[t] = next;
    }
  }
  if (t >= <%= it.across %>u || channel >= <%= it.channels %>) { return; }
  let total = lane_sums[t];
  <%= it.store %>
}
