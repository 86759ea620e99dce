// <%= it.name %>: <%= it.summary %>

<%= it.declarations %>

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.workgroups %>) { return; }
<%= it.workgroup %>

<%= it.places %>

<%
const step = (last, multiply = it.multiply) => { -%>
<%= it.current %>
<% if (!it.prefetch) { -%>
    {
<%= it.fetch %>
    }
<% } -%>
<%= it.store %>
<% if (!it.early) { -%>
    workgroupBarrier();
<% } -%>
<% if (last) { -%>
<%= it.multiplyLast %>
<%= it.fold %>
<% } else { -%>
<% if (it.prefetch) { -%>
    // The next tile travels to registers while this one is multiplied; past the end it is not used.
    {
<%= it.next %>
<%= it.fetch %>
    }
<% } else { -%>
<%= it.next %>
<% } -%>
<% if (it.buffers === "collected") { -%>
    workgroupBarrier();
<% } -%>
<%= multiply %>
<%= it.fold %>
<% if (it.buffers === "one") { -%>
    workgroupBarrier();
<% } -%>
<% } -%>
<% }; -%>
<%
// Where the loop ends, which each step asks for.
const askedEnd = (text) => it.asks ? "workgroupUniformLoad(&loop_end)" : text; -%>
<%
// The loop ends within a step's products; the rest of the last step's follow it.
const rotated = (first, end) => { -%>
<%
const fetch = () => { -%>
    // The next tile travels to registers while <%= it.rotated.early ? "this one" : "the rest of this one" %> is multiplied.
    {
<%= it.next %>
<%= it.fetch %>
    }
<% };
const fill = () => { -%>
    {
<%= it.store %>
    }
    workgroupBarrier();
<% if (it.rotated.early) fetch(); -%>
<%= it.rotated.before %>
<% }; -%>
  if (<%= first %> < <%= end %>) {
<% if (it.rotated.early) { -%>
  {
    let step = <%= first %>;
<% fill() -%>
  }
  for (var step = <%= first %> + 1u; step < <%= end %>; step++) {
<% } else { -%>
<% fill() -%>
  for (var step = <%= first %>; step < <%= end %> - 1u; step++) {
<% fetch() -%>
<% } -%>
<%= it.rotated.after %>
    workgroupBarrier();
<% fill() -%>
  }
<%= it.rotated.after %>
    workgroupBarrier();
  }
<% }; -%>
<%
const rounds = (first, end) => { -%>
  for (var round = <%= first %>; round < <%= end %>; round += <%= it.rounds %>u) {
<% if (it.rowBegin) { -%>
<%= it.rowBegin %>
<% } -%>
<% const { before, after } = it.row; -%>
<% before.forEach((multiply, turn) => { -%>
    {
      let step = round + <%= turn %>u;
<% step(false, multiply) -%>
    }
<% }); -%>
    for (var turn = <%= before.length %>u; turn < <%= it.rounds - after.length %>u; turn++) {
      let step = round + turn;
<% step(false) -%>
    }
<% after.forEach((multiply, turn) => { -%>
    {
      let step = round + <%= it.rounds - after.length + turn %>u;
<% step(false, multiply) -%>
    }
<% }); -%>
  }
<% }; -%>
  // Loaders: what stays fixed for this thread, then the first tile.
<%= it.begin %>
<% if (it.prefetch && !it.parts.reloads) { -%>
  {
<%= it.first %>
<%= it.fetch %>
  }
<% } -%>

<%= it.sums %>
<% if (it.early) { -%>
  {
    let fill = 0u;
<%= it.store %>
<%= it.second %>
<%= it.fetch %>
  }
  workgroupBarrier();
<% } -%>
<% if (it.buffers === "collected") { -%>
  {
    let fill = 0u;
<%= it.collect %>
  }
<% } -%>

<% if (it.parts) { -%>
  // Sums move on every few steps, which keeps what one accumulator adds up short.
  var next_step = first_step;
<% if (it.multiplyLast) { -%>
  let last_step = end_step - 1u;
<% } -%>
  loop {
  let part_step = next_step;
  next_step = min(end_step, part_step + <%= it.parts.steps %>);
<% if (it.parts.stored) { -%>
  let again = part_step > first_step;
<% } -%>
<%= it.parts.clear %>
<% if (it.asks) { -%>
  if (t == 0u) { loop_end = next_step; }
<% } -%>
<% if (it.parts.reloads) { -%>
  {
<%= it.partFirst %>
<%= it.fetch %>
  }
<% } -%>
<% if (it.rounds) { -%>
<% rounds("part_step", "next_step") -%>
<% } else if (it.parts.whole) { -%>
  for (var turn = 0u; turn < <%= it.parts.steps %>; turn++) {
    let step = part_step + turn;
<% step(false) -%>
  }
<% } else if (it.rotated) { -%>
<% rotated("part_step", "next_step") -%>
<% } else { -%>
  for (var step = part_step; step < <%= it.multiplyLast ? "min(next_step, last_step)" : askedEnd("next_step") %>; step++) {
<% step(false) -%>
  }
<% } -%>
<% if (it.multiplyLast) { -%>
  if (next_step == end_step) {
    let step = last_step;
<% step(true) -%>
  }
<% } -%>
<%= it.finish %>

<% if (it.parts.stored) { -%>
<%= it.output %>
<% } -%>
  if (next_step >= end_step) { break; }
  workgroupBarrier();
  }
<% if (!it.parts.stored) { -%>

<%= it.output %>
<% } -%>
<% } else { -%>
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
<% } else if (it.rounds) { -%>
<% rounds("first_step", "end_step") -%>
<% } else if (it.rotated) { -%>
<% rotated("first_step", "end_step") -%>
<% } else if (it.counted) { -%>
  for (var turn = 0u; turn < <%= it.counted.steps %>; turn++) {
    let step = first_step + turn;
<% step(false) -%>
  }
<% if (it.counted.longer) { -%>
  if (<%= it.counted.longer %>) {
    let step = first_step + <%= it.counted.steps %>;
<% step(false) -%>
  }
<% } -%>
<% } else { -%>
<% if (it.asks) { -%>
  if (t == 0u) { loop_end = end_step; }
<% } -%>
  for (var step = first_step; step < <%= askedEnd("end_step") %>; step++) {
<% step(false) -%>
  }
<% } -%>
<%= it.finish %>

<%= it.output %>
<% } -%>
}
