// <%= it.name %>: one thread a patch; its transform goes to <%= it.matrices %> matrices, one a product.
<%= it.declarations %>

<%= it.main %>
  let i = (workgroup.x + workgroup.y * grid.x) * <%= it.size %>u + t;
<% if (it.split) { -%>
  // All threads of a subgroup shuffle.
  let odd = t % 2u == 1u;
<% } else { -%>
  if (i >= <%= it.threads %>) { return; }
<% } -%>
<%= it.body %>
}
