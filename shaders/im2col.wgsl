// <%= it.name %>: images as matrices of (tap, channel) by place, four elements a thread.
<%= it.declarations %>

fn element(group: u32, row: u32, column: u32) -> <%= it.type %> {
<%= it.element %>
  return <%= it.result %>;
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;
  if (i >= <%= it.count %>) { return; }
  let first = i % <%= it.vectors %> * 4u;
  let line = (i / <%= it.vectors %>) % <%= it.lines %>;
  let group = i / (<%= it.vectors %> * <%= it.lines %>);
  <%= it.store %>
}
