// <%= it.name %>: one thread a tile of results; it gathers one element of each of <%= it.matrices %> matrices.
<%= it.declarations %>
<%= it.functions %>

@compute @workgroup_size(<%= it.size %>)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let first = (workgroup.x + workgroup.y * grid.x) * <%= it.size %>u;
  if (first >= <%= it.threads %>) { return; }
<%= it.body %>
}
