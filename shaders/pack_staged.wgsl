// <%= it.name %>: an operand as [group][depth][rows], depth = tap·channels + channel, both padded with zeros. Read along its
// own depth (places q, <%= it.tapFirst ? "taps" : "channels" %> first), turned around in workgroup memory, and written along the rows.
<%= it.declarations %>

var<workgroup> tile: array<array<<%= it.type %>, 33>, 32>;

@compute @workgroup_size(32, 8)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_id) t: vec3u,
) {
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  let q0 = (id % <%= it.depthTiles %>) * 32u;
  let row0 = (id / <%= it.depthTiles %>) % <%= it.rowTiles %> * 32u;
  let group = id / (<%= it.depthTiles %> * <%= it.rowTiles %>);
<% for (let i = 0; i < 32; i += 8) { -%>
  {
    let row = row0 + t.y + <%= i %>u;
    let q = q0 + t.x;
<% if (it.tapFirst) { -%>
    let channel = q / <%= it.taps %>;
    let from_tap = q % <%= it.taps %>;
    let tap = 0u;
<% } else { -%>
    let channel = <%= it.toChannel("q") %>;
    let tap = <%= it.toTapPlace("q") %>;
    let from_tap = <%= it.fromTap %>;
<% } -%>
    let offset = group * <%= it.groupStride %> + row * <%= it.rowStride %> +
      channel * <%= it.channelStride %> + from_tap * <%= it.tapStride %>;
    let inside = row < <%= it.rows %> && channel < <%= it.channels %> && tap < <%= it.taps %>;
    tile[t.y + <%= i %>u][t.x] = select(<%= it.zero %>, <%= it.load("offset") %>, inside);
  }
<% } -%>
  workgroupBarrier();
<% for (let i = 0; i < 32; i += 8) { -%>
  {
    let row = row0 + t.x;
    let q = q0 + t.y + <%= i %>u;
<% if (it.tapFirst) { -%>
    let from_tap = q % <%= it.taps %>;
    let tap = <%= it.toTap %>;
    // Beyond the last channel there is padding only, where it lies.
    let channel = q / <%= it.taps %>;
    let depth = select(q, <%= it.toDepth("channel", "tap") %>, q < <%= it.taps %> * <%= it.paddedChannels %>);
<% } else { -%>
    let depth = q;
<% } -%>
    if (row < <%= it.paddedRows %> && q < <%= it.depth %>) {
      <%= it.store(`tile[t.x][t.y + ${i}u]`) %>
    }
  }
<% } -%>
}
