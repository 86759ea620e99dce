// <%= it.name %>: the gradient of filters where few channels meet; threads sum taps over places, workgroups add threads up.
<%= it.declarations %>
var<workgroup> tile: array<<%= it.sumType %>, <%= it.tileSize %>>;

// Adds up <%= it.together %> of the threads' sums, which lie in the tile, and stores them.
fn fold(first: u32, t: u32, channel_block: u32, outer_tap: u32, run_tap: u32, segment: u32) {
  workgroupBarrier();
  let sum = t / <%= it.parts %>u;
  let part = t % <%= it.parts %>u;
  let lane = sum % <%= it.lanes %>u;
  let start = sum / <%= it.lanes %>u * <%= it.threads %>u + <%= it.laneStart %>;
  var value = <%= it.zero %>;
  if (t < <%= it.sums * it.parts %>u) {
    for (var walker = part; walker < <%= it.walkers %>u; walker += <%= it.parts %>u) {
      value += tile[start + walker * <%= it.walkerStep %>u];
    }
  }
<% if (it.parts > 1) { -%>
  workgroupBarrier();
  if (t < <%= it.sums * it.parts %>u) { tile[t] = value; }
  workgroupBarrier();
  if (part == 0u && t < <%= it.sums * it.parts %>u) {
    for (var i = 1u; i < <%= it.parts %>u; i++) { value += tile[t + i]; }
  }
<% } -%>
  let which = first + sum / <%= it.lanes %>u;
  let own = which / <%= it.tapsOfThread %>u;
  let tap = which % <%= it.tapsOfThread %>u;
  let outer = outer_tap + tap / <%= it.runTaps %>u;
  let along = run_tap + tap % <%= it.runTaps %>u;
  let channel = channel_block * <%= it.lanes %>u + lane;
  if (part == 0u && sum < <%= it.sums %>u && which < <%= it.sumsOfThread %>u &&
    outer < <%= it.outerTaps %> && along < <%= it.allRunTaps %> && channel < <%= it.channels %>) {
<%= it.outerDigits %>
    let offset = segment * <%= it.elements %> + <%= it.offset %>;
<%= it.stores %>
  }
  workgroupBarrier();
}

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
<%= it.place %>
<%= it.sumsText %>
  let end = min((segment + 1u) * <%= it.unitsPerSegment %>, <%= it.units %>);
  for (var unit = segment * <%= it.unitsPerSegment %> + walker; unit < end; unit += <%= it.walkers %>u) {
<%= it.body %>
  }
<%= it.folds %>
}
