// <%= it.name %>: sums of int8 products as int8, four a word.
<%= it.declarations %>
<%= it.functions %>

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;
  if (i >= <%= it.count %>) { return; }
  <%= it.store %>
}
