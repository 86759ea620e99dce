// <%= it.name %>: images as sums of what im2col copied from them.
<%= it.declarations %>

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;
  if (i >= <%= it.count %>) { return; }
<%= it.coordinates %>
  var sum = <%= it.zero %>;
<%= it.loops %>
    let tap = <%= it.tap %>;
    let spot = <%= it.spot %>;
    sum += <%= it.load %>;
<%= it.ends %>
  let offset = <%= it.offset %>;
  <%= it.stores %>
}
