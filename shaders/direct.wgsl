// <%= it.name %>: one thread a result, one product a step, in the order of the definition.
<%= it.declarations %>
<%= it.functions %>

<%= it.main %>
  let id = (workgroup.x + workgroup.y * grid.x) * 64u + t;
  if (id >= <%= it.count %> * <%= it.splits %>) { return; }
  let i = id % <%= it.count %>;
  let split = id / <%= it.count %>;
<%= it.coordinates %>
  let first = split * <%= it.termsPerSplit %>;
  let end = min(first + <%= it.termsPerSplit %>, <%= it.terms %>);
  var sum = <%= it.zero %>;
  for (var term = first; term < end; term++) {
<%= it.term %>
    if (inside) {
<% if (it.whole) { -%>
      sum += <%= it.a %> * <%= it.b %>;
<% } else { -%>
      sum = fma(<%= it.a %>, <%= it.b %>, sum);
<% } -%>
    }
  }
  <%= it.store %>
}
