// <%= it.name %>: <%= it.shape.slices %> slices of <%= it.policy.rows %> x <%= it.policy.columns %> results a workgroup, <%= it.policy.threadRows %> x <%= it.policy.threadColumns %> a thread, <%= it.policy.depth %> deep steps.
<%= it.declarations %>

// Rows of A, then columns of B. When the products are done it carries the sums to the output transform.
var<workgroup> tile: array<array<array<array<vec4f, <%= it.rowVectors %>>, <%= it.policy.depth %>>, <%= it.shape.slices %>>, <%= it.policy.buffers %>>;

@compute @workgroup_size(<%= it.threads %>)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
  let row_tile = id % <%= it.rowTiles %>;
  let column_tile = (id / <%= it.rowTiles %>) % <%= it.columnTiles %>;
  let batch = id / (<%= it.rowTiles %> * <%= it.columnTiles %>);
  let first_row = row_tile * <%= it.policy.rows %>u;
  let first_column = column_tile * <%= it.policy.columns %>u;
<%= it.shape.batchText %>
  let first_step = <%= it.shape.firstStep %>;
  let end_step = <%= it.shape.endStep %>;

  let slice = t / <%= it.perSlice %>u;
  let u = t % <%= it.perSlice %>u;
<% if (it.perSlice >= 32 && it.threadsY >= 4) { -%>
  let lane = u % 32u;
  let warp = u / 32u;
  let tx = (warp % <%= it.threadsX / it.warpColumns %>u) * <%= it.warpColumns %>u + lane % <%= it.warpColumns %>u;
  let ty = (warp / <%= it.threadsX / it.warpColumns %>u) * <%= 32 / it.warpColumns %>u + lane / <%= it.warpColumns %>u;
<% } else { -%>
  let tx = u % <%= it.threadsX %>u;
  let ty = u / <%= it.threadsX %>u;
<% } -%>
<% for (let i = 0; i < it.aFragments; i++) { -%>
  let ay<%= i %> = ty + <%= i * it.threadsY %>u;
<% } -%>
<% for (let j = 0; j < it.bFragments; j++) { -%>
  let bx<%= j %> = <%= it.policy.rows / 4 %>u + tx + <%= j * it.threadsX %>u;
<% } -%>

<%= it.a.begin %>
<%= it.b.begin %>
<%= it.a.registers %>
<%= it.b.registers %>
  {
    let at = first_step;
<%= it.a.fetch %>
<%= it.b.fetch %>
  }

<% for (let s = 0; s < it.sums; s++) { -%>
  var c<%= s %> = vec4f();
<% if (it.flush > 0) { -%>
  var total<%= s %> = vec4f();
<% } -%>
<% } -%>
<% if (it.flush > 0) { -%>
  var until_flush = <%= it.flush %>u;
<% } -%>

<% if (it.policy.buffers === 2) { -%>
  {
    let fill = 0u;
<%= it.a.store %>
<%= it.b.store %>
    let at = first_step + 1u;
<%= it.a.fetch %>
<%= it.b.fetch %>
  }
  workgroupBarrier();
<% } -%>

<% if (it.partial > 0) { -%>
  // Sums go to memory every few steps, which keeps what one accumulator adds up short.
  var next_step = first_step;
  loop {
  let part_step = next_step;
  next_step = min(end_step, part_step + <%= it.partialSteps %>);
  let again = part_step > first_step;
<% for (let s = 0; s < it.sums; s++) { -%>
  c<%= s %> = vec4f();
<% } -%>
<% } -%>
  for (var step = <%= it.partial > 0 ? "part_step" : "first_step" %>; step < <%= it.partial > 0 ? "next_step" : "end_step" %>; step++) {
<% if (it.policy.buffers === 2) { -%>
    let full = (step - first_step) % 2u;
    let fill = 1u - full;
<%= it.a.store %>
<%= it.b.store %>
    {
      let at = step + 2u;
<%= it.a.fetch %>
<%= it.b.fetch %>
    }
<% } else { -%>
    let fill = 0u;
<%= it.a.store %>
<%= it.b.store %>
    workgroupBarrier();
    {
      let at = step + 1u;
<%= it.a.fetch %>
<%= it.b.fetch %>
    }
<% } -%>
<% for (let k = 0; k < it.policy.depth; k++) { -%>
    {
<% for (let i = 0; i < it.aFragments; i++) { -%>
      let a<%= i %> = tile[<%= it.policy.buffers === 2 ? "full" : 0 %>][slice][<%= k %>][ay<%= i %>];
<% } -%>
<% for (let j = 0; j < it.bFragments; j++) { -%>
      let b<%= j %> = tile[<%= it.policy.buffers === 2 ? "full" : 0 %>][slice][<%= k %>][bx<%= j %>];
<% } -%>
<% for (let r = 0; r < it.policy.threadRows; r++) { for (let j = 0; j < it.bFragments; j++) { const s = r * it.bFragments + j; -%>
      c<%= s %> = fma(vec4f(a<%= Math.floor(r / 4) %>.<%= "xyzw"[r % 4] %>), b<%= j %>, c<%= s %>);
<% } } -%>
    }
<% } -%>
<% if (it.flush > 0) { -%>
    until_flush--;
    if (until_flush == 0u) {
      until_flush = <%= it.flush %>u;
<% for (let s = 0; s < it.sums; s++) { -%>
      total<%= s %> += c<%= s %>;
      c<%= s %> = vec4f();
<% } -%>
    }
<% } -%>
    workgroupBarrier();
  }
<% if (it.flush > 0) { for (let s = 0; s < it.sums; s++) { -%>
  c<%= s %> += total<%= s %>;
<% } } -%>

<% if (it.partial > 0 && it.policy.buffers === 2) { -%>
  // The other tile holds the step that comes next.
  let free = (next_step - first_step + 1u) % 2u;
<% } -%>
<% for (let first = 0; first < it.sums; first += it.round) { -%>
  {
<% for (let v = 0; v < it.round; v++) { -%>
    {
      let at = <%= v * it.perSlice %>u + u;
      tile[<%= it.free %>][slice][at / <%= it.width %>u][at % <%= it.width %>u] = c<%= first + v %>;
    }
<% } -%>
    workgroupBarrier();
<% for (let place = 0; place < it.positions; place += it.threads) { -%>
<% if (place + it.threads <= it.positions) { -%>
    {
<% } else { -%>
    if (t < <%= it.positions - place %>u) {
<% } -%>
      let position = t + <%= place %>u;
      let member = position % <%= it.perSlice %>u;
      let sum = <%= first %>u + position / <%= it.perSlice %>u;
<% if (it.perSlice >= 32 && it.threadsY >= 4) { -%>
      let of_lane = member % 32u;
      let of_warp = member / 32u;
      let of_x = (of_warp % <%= it.threadsX / it.warpColumns %>u) * <%= it.warpColumns %>u + of_lane % <%= it.warpColumns %>u;
      let of_y = (of_warp / <%= it.threadsX / it.warpColumns %>u) * <%= 32 / it.warpColumns %>u + of_lane / <%= it.warpColumns %>u;
<% } else { -%>
      let of_x = member % <%= it.threadsX %>u;
      let of_y = member / <%= it.threadsX %>u;
<% } -%>
      let of_row = sum / <%= it.bFragments %>u;
      let row = first_row + (of_y + (of_row / 4u) * <%= it.threadsY %>u) * 4u + of_row % 4u;
      let column = first_column + (of_x + (sum % <%= it.bFragments %>u) * <%= it.threadsX %>u) * 4u;
      let line = position / <%= it.width %>u;
      let vector = position % <%= it.width %>u;
<% for (let s = 0; s < it.shape.slices; s++) { -%>
      let m<%= s %> = tile[<%= it.free %>][<%= s %>][line][vector];
<% } -%>
<% for (const statement of it.transform) { -%>
      <%= statement %>

<% } -%>
<%= it.stored %>
    }
<% } -%>
<% if (first + it.round < it.sums) { -%>
    workgroupBarrier();
<% } -%>
  }
<% } -%>
<% if (it.partial > 0) { -%>
  if (next_step >= end_step) { break; }
  workgroupBarrier();
  }
<% } -%>
}
