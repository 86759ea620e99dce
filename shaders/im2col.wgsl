// <%= it.name %>: images as matrices of (tap, channel) by place, four elements a thread.
<%= it.declarations %>

fn element(group: u32, row: u32, column: u32) -> <%= it.type %> {
<%= it.element %>
  return <%= it.result %>;
}

<%= it.begin %>
  let first = i % <%= it.vectors %> * 4u;
  let line = (i / <%= it.vectors %>) % <%= it.lines %>;
  let group = i / (<%= it.vectors %> * <%= it.lines %>);
  <%= it.store %>
}
