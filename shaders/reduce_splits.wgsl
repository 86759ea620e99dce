// <%= it.name %>: sums the partial results of the splits<%= it.exact ? '' : ', compensated (Kahan),' %> and finishes them.
<%= it.declarations %>
<%= it.functions %>
<% if (!it.exact) { -%>
<%= it.compensation %>
<% } -%>
<% if (it.lanes > 1) { -%>
var<workgroup> lane_sums: array<<%= it.type %>, 256>;
<% if (!it.exact) { -%>
var<workgroup> lane_losts: array<<%= it.type %>, 256>;
<% } -%>
<% } -%>

<%= it.main %>
<% if (it.lanes > 1) { -%>
  let lane = t / <%= it.across %>u;
  let i = (workgroup.x + workgroup.y * grid.x) * <%= it.across %>u + t % <%= it.across %>u;
<% } else { -%>
  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;
  if (i >= <%= it.count %>) { return; }
<% } -%>
  var sum = <%= it.none %>;
<% if (!it.exact) { -%>
  var lost = sum;
<% } -%>
  // Four loads are on their way at once; those beyond the last split add nothing.
<% if (it.lanes > 1) { -%>
  if (i < <%= it.count %>) {
<% } -%>
  for (var first = <%= it.lanes > 1 ? 'lane' : '0u' %>; first < <%= it.splits %>; first += <%= 4 * it.lanes %>u) {
<% for (let k = 0; k < 4; k++) { -%>
    let part<%= k %> = <%= it.load(`min(first + ${k * it.lanes}u, ${it.splits} - 1u)`) %>;
<% } -%>
<% for (let k = 0; k < 4; k++) { -%>
<%   const part = k === 0 ? 'part0' : `select(${it.none}, part${k}, first + ${k * it.lanes}u < ${it.splits})` -%>
<%   if (it.exact) { -%>
    sum += <%= part %>;
<%   } else { -%>
    let term<%= k %> = <%= part %> - lost;
    let next<%= k %> = sum + term<%= k %>;
    lost = lost_of(sum, term<%= k %>, next<%= k %>);
    sum = next<%= k %>;
<%   } -%>
<% } -%>
  }
<% if (it.lanes > 1) { -%>
  }
  lane_sums[t] = sum;
<% if (!it.exact) { -%>
  lane_losts[t] = lost;
<% } -%>
  workgroupBarrier();
  if (lane > 0u || i >= <%= it.count %>) { return; }
  for (var other = <%= it.across %>u; other < 256u; other += <%= it.across %>u) {
<% if (it.exact) { -%>
    sum += lane_sums[other + t];
<% } else { -%>
    let term = lane_sums[other + t] - (lost + lane_losts[other + t]);
    let next = sum + term;
    lost = lost_of(sum, term, next);
    sum = next;
<% } -%>
  }
<% } -%>
<% if (it.place !== '') { -%>
<%= it.place %>
<% } -%>
<% if (it.onto !== '') { -%>
<%   if (it.exact) { -%>
  sum += <%= it.onto %>;
<%   } else { -%>
  sum = <%= it.onto %> + (sum - lost);
<%   } -%>
<% } -%>
  <%= it.store %>
}
