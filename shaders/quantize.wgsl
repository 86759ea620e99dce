// <%= it.name %>: sums of int8 products as int8, four a word.
<%= it.declarations %>
<%= it.functions %>

<%= it.begin %>
  <%= it.store %>
}
