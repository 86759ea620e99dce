// <%= it.name %>: images in window order, as [images][group][outer place][width][outer tap][channel].
<%= it.declarations %>

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;
  if (i >= <%= it.count %>) { return; }
  var rest = i;
  let r = rest % <%= it.channels %>; rest /= <%= it.channels %>;
  let u = rest % <%= it.outerTaps %>; rest /= <%= it.outerTaps %>;
  let k = rest % <%= it.width %>; rest /= <%= it.width %>;
  let m = rest % <%= it.outerPlaces %>; rest /= <%= it.outerPlaces %>;
  let group = rest % <%= it.groups %>;
  let image = rest / <%= it.groups %>;
<%= it.source %>
  <%= it.store("i", "value") %>
}
