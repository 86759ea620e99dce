// <%= it.name %>: an operand as [group][depth][rows], depth = tap·channels + channel, both padded with zeros. Read along its
// channels, turned around in workgroup memory, and written along the rows, by vectors of four.
<%= it.declarations %>

var<workgroup> tile: array<array<<%= it.type %>, <%= it.tileRows + 1 %>>, <%= it.tileDepth %>>;

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  let q0 = (id % <%= it.depthTiles %>) * <%= it.tileDepth %>u;
  let row0 = (id / <%= it.depthTiles %>) % <%= it.rowTiles %> * <%= it.tileRows %>u;
  let group = id / (<%= it.depthTiles %> * <%= it.rowTiles %>);
  {
    // What a thread loads lies in one column of the tile: of one tap.
    let place = t % <%= it.tileDepth / 4 %>u * 4u;
    let depth = q0 + place;
    let channel = <%= it.toChannel("depth") %>;
    let tap = <%= it.toTapPlace("depth") %>;
    let from_tap = <%= it.fromTap %>;
    let offset = group * <%= it.groupStride %> + channel + from_tap * <%= it.tapStride %>;
    let there = channel < <%= it.channels %> && tap < <%= it.taps %>;
<% const high = 1024 / it.tileDepth; -%>
<% for (let i = 0; i < it.tileRows; i += high) { -%>
    let at<%= i %> = t / <%= it.tileDepth / 4 %>u + <%= i %>u;
    let source_row<%= i %> = row0 + at<%= i %>;
    let loaded<%= i %> = <%= it.load(`(offset + source_row${i} * ${it.rowStride}) / 4u`) %>;
<% } -%>
<% for (let i = 0; i < it.tileRows; i += high) { -%>
    let value<%= i %> = select(<%= it.zero %>, loaded<%= i %>, there && source_row<%= i %> < <%= it.rows %>);
<% for (let j = 0; j < 4; j++) { -%>
    tile[place + <%= j %>u][at<%= i %>] = value<%= i %>.<%= "xyzw"[j] %>;
<% } -%>
<% } -%>
  }
  workgroupBarrier();
  let at = t % <%= it.tileRows / 4 %>u * 4u;
  let row = row0 + at;
<% const deep = 1024 / it.tileRows; -%>
<% for (let i = 0; i < it.tileDepth; i += deep) { -%>
  {
    let place = t / <%= it.tileRows / 4 %>u + <%= i %>u;
    let depth = q0 + place;
    if (row < <%= it.paddedRows %> && depth < <%= it.depth %>) {
      <%= it.store(`${it.vector}(tile[place][at], tile[place][at + 1u], tile[place][at + 2u], tile[place][at + 3u])`) %>
    }
  }
<% } -%>
}
