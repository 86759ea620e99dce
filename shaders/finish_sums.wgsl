// <%= it.name %>: sums of products, less what the filters' zero points add to them, finished.
<%= it.declarations %>
<%= it.functions %>
<% if (it.zero) { -%>

fn whole(at: u32) -> i32 {
  let channel = at % <%= it.channels %>;
  let group = channel / <%= it.each %>;
  let first = at / <%= it.channels %> * <%= it.row %>;
  return <%= it.sum %> - <%= it.zero %> * <%= it.ones %>;
}
<% } -%>

<%= it.begin %>
  <%= it.store %>
}
