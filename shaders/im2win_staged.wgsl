// <%= it.name %>: images in window order, as [images][group][outer place][width][outer tap][channel]. The source has
// the width contiguous, the result the channels: tiles are turned around in workgroup memory.
<%= it.declarations %>

var<workgroup> tile: array<array<<%= it.type %>, <%= it.stage.width + 1 %>>, <%= it.stage.run %>>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  var rest = id;
  let run0 = rest % <%= it.runTiles %> * <%= it.stage.run %>u; rest /= <%= it.runTiles %>;
  let k0 = rest % <%= it.widthTiles %> * <%= it.stage.width %>u; rest /= <%= it.widthTiles %>;
  let m = rest % <%= it.outerPlaces %>; rest /= <%= it.outerPlaces %>;
  let group = rest % <%= it.groups %>;
  let image = rest / <%= it.groups %>;
  let row = ((image * <%= it.groups %> + group) * <%= it.outerPlaces %> + m) * <%= it.width %>;
<% for (let i = 0; i < it.stage.run; i += 256 / it.stage.width) { -%>
  {
    let in_run = t / <%= it.stage.width %>u + <%= i %>u;
    let r = (run0 + in_run) % <%= it.channels %>;
    let u = (run0 + in_run) / <%= it.channels %>;
    let k = k0 + t % <%= it.stage.width %>u;
<%= it.source %>
    tile[in_run][t % <%= it.stage.width %>u] = value;
  }
<% } -%>
  workgroupBarrier();
<% for (let i = 0; i < it.stage.width; i += 256 / it.stage.run) { -%>
  {
    let in_run = t % <%= it.stage.run %>u;
    let in_width = t / <%= it.stage.run %>u + <%= i %>u;
    if (run0 + in_run < <%= it.run %> && k0 + in_width < <%= it.width %>) {
      <%= it.store(`(row + k0 + in_width) * ${it.run} + run0 + in_run`, `tile[in_run][in_width]`) %>
    }
  }
<% } -%>
}
