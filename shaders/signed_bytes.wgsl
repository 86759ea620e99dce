// <%= it.name %>: bytes as i8 in [batch][axes][run], with borders along the axes.
<%= it.declarations %>

fn element(e: u32) -> u32 {
<%= it.digits %>
  let inside = <%= it.inside %>;
  let at = select(0u, (<%= it.offset %>) * <%= it.run %> + c, inside);
  return select(<%= it.border %>, <%= it.load %><%= it.top %>, inside);
}

<%= it.begin %>
  <%= it.store %>
}
