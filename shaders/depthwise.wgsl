// <%= it.name %>: products in registers; a thread makes <%= it.results %> results along an axis.
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
<% if (it.end === '') { -%>
<%= it.body %>
<% } else { -%>
  let last_round = <%= it.end %>;
  for (var round = <%= it.first %>; round < last_round; round++) {
<%= it.body %>
  }
<% } -%>
<%= it.stores %>
}
