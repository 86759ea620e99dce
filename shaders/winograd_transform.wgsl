// <%= it.name %>: one thread a patch; its transform goes to <%= it.matrices %> matrices, one a product.
<%= it.declarations %>

<%= it.main %>
<% if (it.split) { -%>
  // All threads of a subgroup shuffle.
  let i = (workgroup.x + workgroup.y * grid.x) * <%= it.size %>u + t;
  let odd = t % 2u == 1u;
<% } else { -%>
  let i = (workgroup.x + workgroup.y * grid.x) * <%= it.size %>u + t;
  if (i >= <%= it.threads %>) { return; }
<% } -%>
<%= it.index %>
<%= it.rows %>
<%= it.columns %>
<% if (it.split) { -%>
<%= it.store %>
<% } -%>
}
