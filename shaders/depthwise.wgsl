// <%= it.name %>: products in registers; a thread makes <%= it.results %> results along an axis.
<%= it.declarations %>
<% if (it.tile !== '') { -%>
var<workgroup> tile: <%= it.tile %>;
<% } -%>
<% if (it.shared.length > 0) { -%>
var<workgroup> sums: array<array<f32, <%= it.sharedThreads %>>, <%= it.shared[0].sums.length %>>;
<% } -%>
<%= it.functions %>

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
<%= it.threadPlace %>
<% if (it.tile !== '') { -%>
  for (var i = t; i < <%= it.staged %>; i += <%= it.threads %>u) {
    let element = first_channel * <%= it.taps %> + i;
    if (element < <%= it.filterElements %>) { <%= it.stage %> }
  }
  workgroupBarrier();
<% } -%>
<% if (it.shared.length === 0) { -%>
  if (<%= it.outside %>) { return; }
<% } else { -%>
  let outside = <%= it.outside %>;
<% } -%>
<%= it.coordinates %>
<%= it.sums %>
<% if (it.shared.length > 0) { -%>
  if (!outside) {
<% } -%>
<% if (it.end === '') { -%>
<%= it.body %>
<% } else { -%>
  let last_round = <%= it.end %>;
  for (var round = <%= it.first %>; round < last_round; round++) {
<%= it.body %>
  }
<% } -%>
<% if (it.shared.length > 0) { -%>
  }
  // Threads that share a run add up what they have, each another result.
  let first_sharing = t - share;
<% it.shared.forEach(({ first, sums }, part) => { -%>
<% if (part > 0) { -%>
  workgroupBarrier();
<% } -%>
<% sums.forEach((sum, i) => { -%>
  sums[<%= i %>][t] = <%= sum %>;
<% }) -%>
  workgroupBarrier();
  for (var one = share; one < <%= sums.length %>u && !outside; one += <%= it.sharing %>u) {
    let which = one<%= first > 0 ? ` + ${first}u` : '' %>;
    let value = <%= it.sharedSum %>;
<%= it.sharedStore %>
  }
<% }) -%>
<% } -%>
<%= it.stores %>
}
