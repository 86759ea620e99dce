// <%= it.name %>: one thread a patch; its transform goes to <%= it.matrices %> matrices, one a product.
<%= it.declarations %>

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;
  if (i >= <%= it.threads %>) { return; }
<%= it.index %>
<%= it.rows %>
<%= it.columns %>
}
