// <%= it.name %>: an operand as [group][depth][rows], depth = tap·channels + channel, both padded with zeros.
<%= it.declarations %>

<%= it.begin %>
  let row = i % <%= it.paddedRows %>;
  let depth = (i / <%= it.paddedRows %>) % <%= it.depth %>;
  let group = i / (<%= it.paddedRows %> * <%= it.depth %>);
  let channel = <%= it.toChannel("depth") %>;
  let tap = <%= it.toTapPlace("depth") %>;
<% if (it.classes) { -%>
<%= it.classes %>
<% } -%>
  let from_tap = <%= it.fromTap %>;
  let offset = group * <%= it.groupStride %> + <%= it.fromRow %> * <%= it.rowStride %> +
    channel * <%= it.channelStride %> + from_tap * <%= it.tapStride %>;
  // Depth beyond the last tap is padding too.
  let inside = row < <%= it.rows %> && channel < <%= it.channels %> && tap < <%= it.taps %><%= it.classes ? " && meets" : "" %>;
  <%= it.store(`select(${it.zero}, ${it.load("offset")}, inside)`) %>
}
