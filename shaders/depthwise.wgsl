// <%= it.name %>: one filter a channel; a thread makes <%= it.results %> results along an axis.
<%= it.declarations %>
<% if (it.tile !== '') { -%>
var<workgroup> tile: <%= it.tile %>;
<% } -%>
<%= it.functions %>

@compute @workgroup_size(<%= it.threads %>)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let id = workgroup.x + workgroup.y * grid.x;
<%= it.threadPlace %>
<% if (it.tile !== '') { -%>
  for (var i = t; i < <%= it.staged %>; i += <%= it.threads %>u) {
    let element = first_channel * <%= it.taps %> + i;
    if (element < <%= it.filterElements %>) { <%= it.stage %> }
  }
  workgroupBarrier();
<% } -%>
  if (<%= it.outside %>) { return; }
<%= it.coordinates %>
<%= it.sums %>
<% if (it.rounds === '') { -%>
<%= it.body %>
<% } else { -%>
  for (var round = 0u; round < <%= it.rounds %>; round++) {
<%= it.body %>
  }
<% } -%>
<%= it.stores %>
}
