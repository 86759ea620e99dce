// <%= it.name %>: images in window order, as [images][group][outer place][width][outer tap][channel]. The source has
// the width contiguous, the result the channels: tiles are turned around in workgroup memory.
<%= it.declarations %>

var<workgroup> tile: array<<%= it.type %>, <%= it.stage.elements %>>;

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  var rest = id;
  let run0 = rest % <%= it.runTiles %> * <%= it.stage.run %>; rest /= <%= it.runTiles %>;
  let k0 = rest % <%= it.widthTiles %> * <%= it.stage.width %>; rest /= <%= it.widthTiles %>;
  let m = rest % <%= it.outerPlaces %>; rest /= <%= it.outerPlaces %>;
  let group = rest % <%= it.groups %>;
  let image = rest / <%= it.groups %>;
  let row = ((image * <%= it.groups %> + group) * <%= it.outerPlaces %> + m) * <%= it.width %>;
  // All loads before the first store, so that they travel together.
<% for (let i = 0; i < it.dealt; i++) { -%>
  var loaded<%= i %>: <%= it.type %>;
  {
    let place = t + <%= 256 * i %>u;
    let in_run = run0 + place / <%= it.stage.width %>;
    let r = in_run % <%= it.channels %>;
    let u = in_run / <%= it.channels %>;
    let k = k0 + place % <%= it.stage.width %>;
<%= it.source %>
    loaded<%= i %> = value;
  }
<% } -%>
<% for (let i = 0; i < it.dealt; i++) { -%>
  {
    let place = t + <%= 256 * i %>u;
    if (place < <%= it.stage.count %>) {
      tile[place / <%= it.stage.width %> * <%= it.stage.pitch %> + place % <%= it.stage.width %>] = loaded<%= i %>;
    }
  }
<% } -%>
  workgroupBarrier();
<% for (let i = 0; i < it.dealt; i++) { -%>
  {
    let place = t + <%= 256 * i %>u;
    let in_run = place % <%= it.stage.run %>;
    let in_width = place / <%= it.stage.run %>;
    if (place < <%= it.stage.count %> && run0 + in_run < <%= it.run %> && k0 + in_width < <%= it.width %>) {
      <%= it.store(`(row + k0 + in_width) * ${it.run} + run0 + in_run`, `tile[in_run * ${it.stage.pitch} + in_width]`) %>
    }
  }
<% } -%>
}
