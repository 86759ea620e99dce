// <%= it.name %>: transforms a filter for the slice loop.
<%= it.declarations %>
<%= it.functions %>
var<workgroup> squares: array<array<array<f32, 17>, 16>, <%= it.together %>>;

<%= it.main %>
  let id = workgroup.x + workgroup.y * grid.x;
  if (id >= <%= it.count %>) { return; }
  let first_place = (id % <%= it.placeTiles %>) * 16u;
  let id1 = id / <%= it.placeTiles %>;
  let first_channel = (id1 % <%= it.channelTiles %>) * 16u;
  let id2 = id1 / <%= it.channelTiles %>;
  let tap = id2 % <%= it.taps %>;
  let group = id2 / <%= it.taps %>;
<%= it.digits %>

<% if (it.channelsFirst) { -%>
  let my_place = t / 16u;
  let my_channel = t % 16u;
<% } else { -%>
  let my_place = t % 16u;
  let my_channel = t / 16u;
<% } -%>
  let place = first_place + my_place;
  let channel = first_channel + my_channel;
  let inside = place < <%= it.places %> && channel < <%= it.channels %>;
  let base = <%= it.base %>;
<% for (const line of it.loads) { -%>
<%= line %>

<% } -%>
<% for (const line of it.statements) { -%>
  <%= line %>

<% } -%>

  // Squares, some at once: written place by channel, read back with places along the threads.
<% if (it.split) { -%>
  let to_place = first_place + 2u * (t % 8u);
  let to_channel = first_channel + t / 8u % 16u;
  let low = t >= 128u;
<% } else { -%>
  let to_place = first_place + t % 16u;
  let to_channel = first_channel + t / 16u;
<% } -%>
  let stored = to_place < <%= it.paddedPlaces %> && to_channel < <%= it.paddedChannels %>;
<% for (let first = 0; first < it.outputs.length; first += it.together) { -%>
<% const some = it.outputs.slice(first, first + it.together); -%>
<% some.forEach((output, i) => { -%>
  squares[<%= i %>][my_place][my_channel] = <%= output %>;
<% }) -%>
  workgroupBarrier();
<% some.forEach((_, i) => { -%>
  if (stored) { <%= it.stores[first + i] %> }
<% }) -%>
  workgroupBarrier();
<% } -%>
}
