// <%= it.name %>: sums the partial results of the splits<%= it.exact ? '' : ', compensated (Kahan),' %> and finishes them.
<%= it.declarations %>
<%= it.functions %>

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) workgroup: vec3u,
  @builtin(num_workgroups) grid: vec3u,
  @builtin(local_invocation_index) t: u32,
) {
  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;
  if (i >= <%= it.count %>) { return; }
<% if (it.place !== '') { -%>
<%= it.place %>
<% } -%>
  var sum = <%= it.zero %>;
<% if (it.exact) { -%>
  for (var split = 0u; split < <%= it.splits %>; split++) { sum += <%= it.load %>; }
<% } else { -%>
  var lost = <%= it.lost %>;
  for (var split = 0u; split < <%= it.splits %>; split++) {
    let term = <%= it.load %> - lost;
    let next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
<% } -%>
  <%= it.store %>
}
