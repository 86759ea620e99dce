// <%= it.name %>: images as sums of what im2col copied from them.
<%= it.declarations %>

<%= it.begin %>
<%= it.coordinates %>
  var sum = <%= it.zero %>;
<%= it.loops %>
    let tap = <%= it.tap %>;
    let spot = <%= it.spot %>;
    sum += <%= it.load %>;
<%= it.ends %>
  let offset = <%= it.offset %>;
  <%= it.stores %>
}
