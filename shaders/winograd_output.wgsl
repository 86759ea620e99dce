// <%= it.name %>: one thread a tile of results; it gathers one element of each of <%= it.matrices %> matrices.
<%= it.declarations %>
<%= it.functions %>

@compute @workgroup_size(128)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (workgroup.x + workgroup.y * grid.x) * 128u + t;
  if (i >= <%= it.threads %>) { return; }
<%= it.index %>
<%= it.columns %>
<%= it.rows %>
}
