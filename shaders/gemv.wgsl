// <%= it.name %>: a matrix times <%= it.vectors %> vector<%= it.vectors > 1 ? 's' : '' %>, <%= it.lanes %> thread<%= it.lanes > 1 ? 's' : '' %> a place.
<%= it.declarations %>
<%= it.functions %>
<% if (it.lanes > 1) { -%>
var<workgroup> sums: array<array<<%= it.type %>, <%= it.threads %>>, <%= it.together %>>;
<% } -%>

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  let tile = id % <%= it.tiles %>;
  let split = id / <%= it.tiles %> % <%= it.splits %>;
  let group = id / (<%= it.tiles %> * <%= it.splits %>);
  if (group >= <%= it.batches %>) { return; }
  let first_place = tile * <%= it.tile %>u;
  let end = min((split + 1u) * <%= it.perSplit %>, <%= it.blocks %>);
  // Neighbouring threads load what lies side by side.
<% if (it.along) { -%>
  let lane = t % <%= it.lanes %>u;
  let own = t / <%= it.lanes %>u;
<% } else { -%>
  let lane = t / <%= it.groups %>u;
  let own = t % <%= it.groups %>u;
<% } -%>
<% for (const base of it.bases) { -%>
<%= base %>
<% } -%>
  let vector_base = <%= it.vectorBase %>;
<% for (const sum of it.sums) { -%>
<%= sum %>
<% } -%>
  var block = split * <%= it.perSplit %> + lane;
  for (; block + <%= it.span %>u < end; block += <%= it.step %>u) {
<%= it.round %>
  }
<% if (it.rest !== '') { -%>
  // What is left of the blocks, all at once: those beyond add nothing.
  if (block < end) {
<%= it.rest %>
  }
<% } -%>
<% for (const { value, store } of it.stores) { -%>
  {
    let value = <%= value %>;
<% for (const line of store) { -%>
    <%= line %>
<% } -%>
  }
<% } -%>
<% if (it.lanes > 1) { -%>
  let at = lane * <%= it.groups %>u + own;
<% } -%>
<% it.chunks.forEach(({ kept, steps, threads, store }, chunk) => { -%>
<% if (chunk > 0) { -%>
  workgroupBarrier();
<% } -%>
<% for (const line of kept) { -%>
  <%= line %>
<% } -%>
  workgroupBarrier();
<% for (const step of steps) { -%>
  if (at < <%= step.threads %>u) {
<% for (const line of step.text) { -%>
    <%= line %>
<% } -%>
  }
  workgroupBarrier();
<% } -%>
  if (t < <%= threads %>u) {
    let one = t / <%= it.groups %>u;
    let own = t % <%= it.groups %>u;
    let value = <%= it.lastSum %>;
<% for (const line of store) { -%>
    <%= line %>
<% } -%>
  }
<% }) -%>
}
