// <%= it.name %>: one thread a tile of results; it gathers one element of each of <%= it.matrices %> matrices.
<%= it.declarations %>
<%= it.functions %>

<%= it.main %>
  let first = (workgroup.x + workgroup.y * grid.x) * <%= it.size %>u;
  if (first >= <%= it.threads %>) { return; }
<%= it.body %>
}
