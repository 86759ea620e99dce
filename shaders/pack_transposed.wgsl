// <%= it.name %>: matrices of rows with the depth contiguous, as [group][depth][rows], both padded with zeros.
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
  let depth0 = (id % <%= it.depthTiles %>) * 32u;
  let row0 = (id / <%= it.depthTiles %>) % <%= it.rowTiles %> * 32u;
  let group = id / (<%= it.depthTiles %> * <%= it.rowTiles %>);
<% for (let i = 0; i < 32; i += 8) { -%>
  {
    let row = row0 + t.y + <%= i %>u;
    let depth = depth0 + t.x;
    let inside = row < <%= it.rows %> && depth < <%= it.depth %>;
    tile[t.y + <%= i %>u][t.x] = select(<%= it.zero %>, <%= it.load %>, inside);
  }
<% } -%>
  workgroupBarrier();
<% for (let i = 0; i < 32; i += 8) { -%>
  {
    let row = row0 + t.x;
    let depth = depth0 + t.y + <%= i %>u;
    if (row < <%= it.paddedRows %> && depth < <%= it.paddedDepth %>) {
      <%= it.store(`tile[t.x][t.y + ${i}u]`) %>
    }
  }
<% } -%>
}
