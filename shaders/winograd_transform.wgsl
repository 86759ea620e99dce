// <%= it.name %>: one thread a patch; its transform goes to <%= it.matrices %> matrices, one a product.
<%= it.declarations %>
<% if (it.quads) { -%>

var<workgroup> staged: array<f32, <%= it.matrices * it.size %>>;
var<workgroup> quad_places: array<u32, <%= it.size / 4 %>>;
<% } -%>

@compute @workgroup_size(<%= it.size %>)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
<% if (it.quads) { -%>
  let first = (workgroup.x + workgroup.y * grid.x) * <%= it.size %>u;
  if (first >= <%= it.threads %>) { return; }
  let i = first + t;
  let lane = (t % 4u) * <%= it.size / 4 %>u + t / 4u;
<% } else if (it.split) { -%>
  // All threads of a subgroup shuffle.
  let i = (workgroup.x + workgroup.y * grid.x) * <%= it.size %>u + t;
  let odd = t % 2u == 1u;
<% } else { -%>
  let i = (workgroup.x + workgroup.y * grid.x) * <%= it.size %>u + t;
  if (i >= <%= it.threads %>) { return; }
<% } -%>
<%= it.index %>
<%= it.rows %>
<%= it.columns %>
<% if (it.split) { -%>
<%= it.store %>
<% } -%>
<% if (it.quads) { -%>
  if (t % 4u == 0u) { quad_places[t / 4u] = at / 4u; }
  workgroupBarrier();
<%= it.store %>
<% } -%>
}
