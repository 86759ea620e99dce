// <%= it.name %>: <%= it.policy.rows %> x <%= it.policy.columns %> results a workgroup, <%= it.policy.threadRows %> x <%= it.policy.threadColumns %> a thread, <%= it.policy.depth %> deep steps.
<%= it.declarations %>

<%= it.tiles %>

@compute @workgroup_size(<%= it.threads %>)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
<% if (it.range) { -%>
  let tile = <%= it.range.first %> + id % <%= it.range.count %>;
  let split = id / <%= it.range.count %>;
  let row_tile = tile % <%= it.rowTiles %>;
  let column_tile = (tile / <%= it.rowTiles %>) % <%= it.columnTiles %>;
  let group = tile / (<%= it.rowTiles %> * <%= it.columnTiles %>);
<% } else { -%>
  let row_tile = id % <%= it.rowTiles %>;
  let column_tile = (id / <%= it.rowTiles %>) % <%= it.columnTiles %>;
  let batch = id / (<%= it.rowTiles %> * <%= it.columnTiles %>);
  let group = batch / <%= it.splits %>;
  let split = batch % <%= it.splits %>;
<% } -%>
  let first_row = row_tile * <%= it.policy.rows %>u;
  let first_column = column_tile * <%= it.policy.columns %>u;
  let first_step = split * <%= it.stepsPerSplit %>;
  let end_step = min(first_step + <%= it.stepsPerSplit %>, <%= it.steps %>);

  let lane = t % 32u;
  let warp = t / 32u;
  let tx = (warp % <%= it.warpsX %>u) * <%= it.policy.warp[1] %>u + lane % <%= it.policy.warp[1] %>u;
  let ty = (warp / <%= it.warpsX %>u) * <%= it.policy.warp[0] %>u + lane / <%= it.policy.warp[1] %>u;
<% for (let i = 0; i < it.aFragments; i++) { -%>
  let ay<%= i %> = ty + <%= i * it.threadsY %>u;
<% } -%>
<% for (let j = 0; j < it.bFragments; j++) { -%>
  let bx<%= j %> = tx + <%= j * it.threadsX %>u;
<% } -%>

  // Loaders: what stays fixed for this thread, then the first tile.
<%= it.places %>
<%= it.begin %>
<%= it.registers %>
<% if (it.variant.prefetch) { -%>
  {
<%= it.fetch %>
  }
<% } -%>

<%= it.sums %>

<%
const step = (last) => { -%>
<% if (it.variant.doubleBuffer) { -%>
    // The other tile may still be read: one barrier a step is enough.
    let half = (step - first_step) % 2u;
<% } -%>
<% if (!it.variant.prefetch) { -%>
    {
<%= it.fetch %>
    }
<% } -%>
<%= it.store %>
    workgroupBarrier();
<% if (last) { -%>
<%= it.multiplyLast %>
<%= it.fold %>
<% } else { -%>
<% if (it.variant.prefetch) { -%>
    // The next tile travels to registers while this one is multiplied; past the end it is not used.
    {
<%= it.advance %>
<%= it.fetch %>
    }
<% } else { -%>
<%= it.advance %>
<% } -%>
<%= it.multiply %>
<%= it.fold %>
<% if (!it.variant.doubleBuffer) { -%>
    workgroupBarrier();
<% } -%>
<% } -%>
<% }; -%>
<% if (it.multiplyLast) { -%>
  let last_step = end_step - 1u;
<% if (it.allSteps === 2) { -%>
  {
    let step = first_step;
<% } else if (it.allSteps > 2) { -%>
  for (var step = first_step; step < last_step; step++) {
<% } -%>
<% if (it.allSteps > 1) { -%>
<% step(false) -%>
  }
<% } -%>
  {
    let step = last_step;
<% step(true) -%>
  }
<% } else { -%>
  for (var step = first_step; step < end_step; step++) {
<% step(false) -%>
  }
<% } -%>
<%= it.finish %>

<%= it.epilogue %>
}
